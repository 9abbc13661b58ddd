"""What every test may use: the folder of the experiments' data, and one setting for property tests."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Compilation and a busy machine make single examples slow; neither is a fault of the code under test.
settings.register_profile("fast", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fast")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Look for examples in docstrings (`--doctest-modules`) in the package, not in the helpers of the tests."""
    is_helper = collection_path.suffix == ".py" and not collection_path.name.startswith(("test_", "conftest"))
    return True if is_helper else None


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the experiments' data, which do not belong to the repository."""
    beside_the_repository = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SUBCHAIN_DATA", beside_the_repository))
    if not folder.is_dir():
        pytest.skip(f"no data in {folder}; set SUBCHAIN_DATA to the folder that holds them")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded source of random numbers."""
    return np.random.default_rng(20161115)


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> None:
    """Shells have what they run in the background ignore Ctrl-C, and some tests interrupt themselves."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
