"""Decorators of the seam: each is both a provider and a listener to one, and supplies what a broker lacks."""
