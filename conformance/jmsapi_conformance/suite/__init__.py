"""The tests: one module a section. Collected by the plug-in, not by their names."""
