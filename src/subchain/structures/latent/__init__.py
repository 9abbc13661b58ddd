"""Treebanks whose symbols have latent annotations: trees are given, annotations are hidden."""
