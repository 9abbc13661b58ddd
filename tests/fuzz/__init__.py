"""Attacks on the package with random input, deterministic by seed."""
