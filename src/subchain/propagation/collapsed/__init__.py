"""Recursions and draws with the parameters summed out."""
