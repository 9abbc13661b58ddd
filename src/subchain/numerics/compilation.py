"""Notice when Numba compiles: kernels that are not in the cache cost a fit seconds before its first iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core import event


class _Count(event.Listener):
    """Number of compilations under way; one may begin inside another."""

    def __init__(self, changed: Callable[[bool], None]) -> None:
        self.under_way = 0
        self.changed = changed

    def on_start(self, event: event.Event) -> None:
        self.under_way += 1
        self.changed(True)

    def on_end(self, event: event.Event) -> None:
        self.under_way -= 1
        self.changed(self.under_way > 0)


@contextmanager
def watching_compilation(changed: Callable[[bool], None]) -> Iterator[None]:
    """Call `changed` with True when a compilation begins and with False when none is under way any more."""
    with event.install_listener("numba:compile", _Count(changed)):
        yield
