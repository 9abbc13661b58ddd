"""Projective dependency trees under the dependency model with valence: expectations, best trees, draws."""
