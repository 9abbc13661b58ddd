"""What held-out data say of a model."""

from __future__ import annotations

from typing import Any, Protocol


class Validation(Protocol):
    """Scores a model on data it does not learn from."""

    def score(self, point: Any) -> float:
        """Return the log probability of a held-out observation, on average."""

    def contents(self) -> Any:
        """Return what the score depends on, for telling fits apart."""
