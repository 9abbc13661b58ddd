"""Base classes and files that all other packages use: records of arrays, statistics, components."""
