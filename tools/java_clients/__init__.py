"""The conformance suite through Java's own JMS clients: a development tool, no part of any distribution."""
