"""What every experiment has: rows of numbers, a figure of them, and sentences that the numbers prove or refute."""

from __future__ import annotations

import csv
import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from subchain.errors import InputError

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Claim:
    """Something that is said of the numbers; whether it holds, and the numbers themselves.

    A claim of a paper's that we have reason to doubt is no failure if it does not come out.
    """

    text: str
    holds: bool
    evidence: str
    doubted: bool = False

    @property
    def failed(self) -> bool:
        return not self.holds and not self.doubted

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does not come out" if self.doubted else "DOES NOT HOLD"
        return f"{verdict}: {self.text} ({self.evidence})"


class Experiment(ABC):
    """One figure or table."""

    name: ClassVar[str]
    title: ClassVar[str]
    #: Runs of every setting in a quick look.
    quick_seeds: ClassVar[int] = 1

    def __init__(self, quick: bool = False, seeds: int = 3, tell: Callable[[str], None] = print) -> None:
        self.quick = quick
        self.seeds = self.quick_seeds if quick else seeds
        self.tell = tell

    @abstractmethod
    def rows(self) -> Iterable[Row]:
        """The table, a row a run."""

    @abstractmethod
    def claims(self, rows: list[Row]) -> list[Claim]:
        """What the rows say."""

    @abstractmethod
    def draw(self, rows: list[Row], axes: Any) -> None:
        """The figure, on matplotlib's axes."""

    def summary(self, rows: list[Row]) -> list[str]:
        """Lines of a smaller table, means for the most part, that stand before the verdict; none by default."""
        return []

    def run(self, folder: Path) -> list[Claim]:
        """Run everything; write `name.csv`, `name.png` and `name.txt` to the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        rows = []
        for row in self.rows():
            self.tell("  ".join(f"{key} {_shown(value)}" for key, value in row.items()))
            rows.append(row)
        names = list(dict.fromkeys(key for row in rows for key in row))
        with open(folder / f"{self.name}.csv", "w", newline="", encoding="utf8") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)
        self._save_figure(rows, folder / f"{self.name}.png")
        claims, summary = self.claims(rows), self.summary(rows)
        for line in summary:
            self.tell(line)
        lines = [self.title, *summary, *(str(claim) for claim in claims)]
        (folder / f"{self.name}.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
        return claims

    def _save_figure(self, rows: list[Row], path: Path) -> None:
        try:
            import matplotlib
        except ImportError:
            self.tell("no figure: install subchain[plot] for matplotlib")
            return
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(7.0, 4.5), layout="constrained")
        self.draw(rows, axes)
        axes.set_title(self.title, fontsize=10)
        figure.savefig(path, dpi=140)
        plt.close(figure)


def mean_of(rows: Iterable[Row], value: str, **where: Any) -> float:
    """Mean of a column over the rows that agree with `where`; nan if there are none."""
    chosen = [row[value] for row in rows if all(row.get(key) == wanted for key, wanted in where.items())]
    return float(np.mean(chosen)) if chosen else float("nan")


def data_file(*parts: str) -> Path:
    """A file of a corpus that is not part of the package."""
    folder = Path(os.environ.get("SUBCHAIN_DATA", "../shared/data"))
    path = folder.joinpath(*parts)
    if not path.exists():
        raise InputError(f"{path} does not exist; set SUBCHAIN_DATA to the folder that holds {parts[0]}/.")
    return path


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
