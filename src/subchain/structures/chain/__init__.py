"""The hidden Markov chain: parts `chain` and `emission`, and forward-backward between them and the data."""
