"""Kernels of word alignment: co-occurring words, one sentence pair, passes over pairs, collapsed visits."""
