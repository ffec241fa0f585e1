"""JMS 2.0 for Python."""
