"""Figures and tables of papers, done again: each experiment is a command that writes a table, a figure and a verdict.

    python -m experiments list               lists them
    python -m experiments run sentences      runs one

Corpora that may not be redistributed are looked for in the folder that the environment variable SUBCHAIN_DATA names.
"""
