"""Forward-backward and decoding restricted to the legal states of each position."""
