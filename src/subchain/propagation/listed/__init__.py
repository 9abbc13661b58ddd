"""Forward-backward over the legal states of each position alone."""
