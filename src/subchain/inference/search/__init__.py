"""Search over the number of states: merges and splits that raise the objective."""
