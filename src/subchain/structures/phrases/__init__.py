"""Sentences whose trees of phrases are hidden."""
