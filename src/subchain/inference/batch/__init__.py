"""Algorithms whose iterations are passes over all the data."""
