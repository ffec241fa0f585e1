"""The pages on installing, done in a fresh container."""
