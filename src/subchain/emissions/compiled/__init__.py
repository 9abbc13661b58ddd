"""What compiled passes see of the families: observations, likelihoods and sums as named tuples of arrays."""
