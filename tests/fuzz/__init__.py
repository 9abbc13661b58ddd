"""Attacks on the package by random cases: fits of any kind, runs that are killed, files that were damaged or forged."""
