"""Foundations that every package may use: records of arrays, statistics, components, files."""
