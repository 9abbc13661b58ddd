"""Seeds: every restart, path and block gets an independent random stream derived from one seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from subchain.errors import InputError


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Return the root of all random streams.

    Parameters
    ----------
    random_state : an integer, a NumPy generator, or None for entropy from the operating system
    """
    if isinstance(random_state, np.random.SeedSequence):
        # a copy, because spawning changes the sequence
        return np.random.SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key)
    if random_state is None or (isinstance(random_state, (int, np.integer)) and random_state >= 0):
        return np.random.SeedSequence(random_state)
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63)))
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31)))
    raise InputError(f"random_state must be a whole number >= 0, a numpy Generator or None, not {random_state!r}.")
