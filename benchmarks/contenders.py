"""Who takes part: a package, one of its models, and how it infers.

A contender takes a problem in the form its package likes best (`prepare`: conversion, compilation) and then trains
(`iterate`). Only the second is measured. It notes the clock at the beginning and after every iteration, and what the
package says it climbs.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import time
from abc import ABC, abstractmethod

from benchmarks.cases import Problem


@dataclasses.dataclass
class Course:
    """Clock and objective of a run.

    Attributes
    ----------
    marks : the clock at the beginning, and after each iteration
    objectives : one for each iteration; None where a package has none to tell
    """

    marks: list[float] = dataclasses.field(default_factory=list)
    objectives: list[float | None] = dataclasses.field(default_factory=list)

    def begin(self) -> None:
        self.marks = [time.perf_counter()]

    def note(self, objective: float) -> None:
        self.marks.append(time.perf_counter())
        self.objectives.append(float(objective))

    @property
    def seconds(self) -> list[float]:
        """Time of each iteration."""
        return [after - before for before, after in zip(self.marks, self.marks[1:], strict=False)]


class Contender(ABC):
    """One package's way to train a model.

    Attributes
    ----------
    package : name for `import`
    label : which of the package's implementations
    inference : "EM" or "VI"
    n_jobs : threads it may use; None for as many as the package takes
    """

    package: str
    label: str
    inference: str
    n_jobs: int | None = None

    @property
    def name(self) -> str:
        return " ".join(part for part in (self.package, self.label) if part)

    @property
    def key(self) -> str:
        """A name that no other contender has."""
        threads = "" if self.n_jobs is None else f" on {self.n_jobs}"
        return f"{self.name} {self.inference}{threads}"

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None

    def load(self, problem: Problem) -> None:  # noqa: B027 (most packages are ready when they have been imported)
        """Bring the package into memory, all of it; the problem is there to practise on."""

    @abstractmethod
    def prepare(self, problem: Problem) -> None:
        """Take the problem over, and do all that is done once."""

    @abstractmethod
    def iterate(self, n_iterations: int) -> Course:
        """Train for this many iterations."""
