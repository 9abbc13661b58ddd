"""The probability that a transition occurs at least once."""
