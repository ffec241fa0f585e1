"""Decorators of the provider interface: each is a provider and takes the events of one, and supplies what a broker lacks."""
