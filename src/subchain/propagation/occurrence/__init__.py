"""Probability that a transition occurs at least once in a chain."""
