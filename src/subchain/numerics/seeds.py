"""Seeds: every restart, path and block gets a stream of its own from one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from subchain.errors import InputError


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """The root of all streams: from a whole number, a generator, or (None) from the operating system."""
    if isinstance(random_state, np.random.SeedSequence):
        return np.random.SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key)  # spawning changes it
    if random_state is None or (isinstance(random_state, (int, np.integer)) and random_state >= 0):
        return np.random.SeedSequence(random_state)
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63)))
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31)))
    raise InputError(f"random_state must be a whole number >= 0, a numpy Generator or None, not {random_state!r}.")
