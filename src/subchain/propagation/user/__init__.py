"""Forward-backward, filtering, decoding and sampling for log likelihoods that the caller computes."""
