"""Collapsed inference for hidden Markov chains: counts, what each cluster of positions has put into them, visits."""
