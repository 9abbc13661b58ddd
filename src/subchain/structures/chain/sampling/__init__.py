"""Walkers: Markov chains over the hidden states of sequences, for samplers."""
