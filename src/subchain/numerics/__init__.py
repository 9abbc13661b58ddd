"""Numerical tools without any model: Dirichlet formulas, special functions, vector registers, seeds."""
