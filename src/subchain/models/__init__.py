"""Estimators: `HMM` wires data, families, priors, inference and engines together."""
