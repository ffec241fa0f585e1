"""The file of a stored broker. Its modules load SQLite, so they are imported only when a broker has a file."""
