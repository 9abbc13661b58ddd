"""Forward-backward, filtering, decoding and sampling for likelihoods that the caller brings."""
