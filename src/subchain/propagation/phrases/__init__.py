"""Trees of phrases under a probabilistic context-free grammar: expectations, best trees, draws."""
