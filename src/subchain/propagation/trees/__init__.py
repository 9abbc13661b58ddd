"""Projective dependency trees of sentences: expectations, best trees and draws under the dependency model with valence."""
