"""Tests of neural models run PyTorch on one thread: the networks are tiny, and its threads wait by spinning."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    torch = pytest.importorskip("torch", reason="subchain.neural needs PyTorch, which is not installed")
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # for commands
    yield
    torch.set_num_threads(n_threads)
