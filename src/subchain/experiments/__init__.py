"""Figures and tables of papers, done again: each experiment is a command that writes a table, a figure and a verdict.

    python -m subchain.experiments                      lists them
    python -m subchain.experiments words --out results  runs one

Corpora that may not be redistributed are looked for in the folder that the environment variable SUBCHAIN_DATA names.
"""
