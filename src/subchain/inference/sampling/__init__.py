"""Markov chain Monte Carlo over the hidden states."""
