"""Distributed transactions of the in-process broker."""
