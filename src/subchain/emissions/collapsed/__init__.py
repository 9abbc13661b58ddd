"""Counts of families for the compiled visits of collapsed inference: what each has counted, and its two verbs."""
