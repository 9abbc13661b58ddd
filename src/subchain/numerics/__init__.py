"""Numerical functions that know no model: Dirichlet distributions, special functions, SIMD vectors, seeds."""
