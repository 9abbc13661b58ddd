"""Sentence pairs whose word alignments are hidden."""
