"""Hierarchical Dirichlet process prior over the rows of the transition matrix, in several constructions."""
