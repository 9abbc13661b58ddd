"""Where runs begin: k-means, random draws, local posteriors, and the length of subchains."""
