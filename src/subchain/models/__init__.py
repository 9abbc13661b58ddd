"""Estimators: `HMM` combines data, emission families, priors, inference algorithms and engines."""
