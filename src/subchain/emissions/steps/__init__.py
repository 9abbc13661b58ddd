"""What compiled stochastic updates see of the families: prior, sums and likelihoods as named tuples of arrays."""
