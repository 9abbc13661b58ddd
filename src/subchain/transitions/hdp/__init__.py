"""The hierarchical Dirichlet process prior over the rows of the transition matrix, in three constructions."""
