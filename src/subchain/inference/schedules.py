"""Which part of the data an iteration visits."""

from __future__ import annotations

from typing import Protocol

from subchain.inference.problem import Part, Problem


class Schedule(Protocol):
    """Hands out parts of the data, one an iteration."""

    def next(self, problem: Problem, iteration: int) -> Part: ...


class Everything:
    """All sequences, every time."""

    def next(self, problem: Problem, iteration: int) -> Part:
        return problem.whole
