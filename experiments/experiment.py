"""What every experiment has: rows of numbers, a figure of them, and sentences that the numbers prove or refute."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from subchain.core.components import clone
from subchain.inference import Algorithm

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Claim:
    """Something that is said of the numbers; whether it holds, and the numbers themselves.

    A claim of a paper's that we have reason to doubt is no failure if it does not come out. `published` is what the
    paper has for it, in numbers where it gives any; empty for claims of our own.
    """

    text: str
    holds: bool
    evidence: str
    doubted: bool = False
    published: str = ""

    @property
    def failed(self) -> bool:
        return not self.holds and not self.doubted

    @property
    def verdict(self) -> str:
        """One word for it: "holds", "failed" or, of a claim that was doubted, "doubted"."""
        return "holds" if self.holds else "doubted" if self.doubted else "failed"

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does not come out" if self.doubted else "DOES NOT HOLD"
        return f"{verdict}: {self.text} ({self.evidence})"


class Experiment(ABC):
    """One figure or table.

    Parameters
    ----------
    quick : fewer seeds and settings
    seeds : runs of every setting
    tell : what progress is told to
    budget : seconds of a run, where these are free to choose; None for the experiment's own
    """

    name: ClassVar[str]
    title: ClassVar[str]
    #: Runs of every setting in a quick look.
    quick_seeds: ClassVar[int] = 1
    #: Folders of data that are needed.
    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        quick: bool = False,
        seeds: int = 3,
        tell: Callable[[str], None] = print,
        budget: float | None = None,
    ) -> None:
        self.quick = quick
        self.seeds = self.quick_seeds if quick else seeds
        self.tell = tell
        self.budget = budget

    @classmethod
    def heading(cls) -> str:
        """The title without the paper."""
        return cls.title.rpartition(" (")[0] or cls.title

    @classmethod
    def source(cls) -> str:
        """The paper and its figure, which the title ends with in brackets; "our own" if there is none."""
        return cls.title.rpartition(" (")[2].rstrip(")") if cls.title.endswith(")") else "our own"

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
        """Run everything; write `name.csv`, `name.png`, `name.txt` and `name.json` to the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        began = time.perf_counter()
        rows = []
        for row in self.rows():
            self.tell("  ".join(f"{key} {_shown(value)}" for key, value in row.items()))
            rows.append(row)
        seconds = time.perf_counter() - began
        (folder / f"{self.name}.csv").write_bytes(_as_csv(rows))
        claims, summary = self.claims(rows), self.summary(rows)
        for line in summary:
            self.tell(line)
        figure = self._figure(rows)
        if figure is not None:
            (folder / f"{self.name}.png").write_bytes(figure)
        lines = [self.title, *summary, *(str(claim) for claim in claims)]
        (folder / f"{self.name}.txt").write_bytes(("\n".join(lines) + "\n").encode())
        result = {
            "name": self.name, "title": self.heading(), "source": self.source(), "quick": self.quick,
            "seeds": self.seeds, "seconds": seconds, "summary": summary,
            "claims": [dataclasses.asdict(claim) | {"verdict": claim.verdict} for claim in claims],
        }  # fmt: skip
        (folder / f"{self.name}.json").write_bytes(json.dumps(result, indent=1, default=_number).encode())
        return claims

    def _figure(self, rows: list[Row]) -> bytes | None:
        """The figure as a PNG file; None where nothing can draw it."""
        try:
            import matplotlib
        except ImportError:
            self.tell("no figure: install subchain[plot] for matplotlib")
            return None
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(7.0, 4.5), layout="constrained")
        self.draw(rows, axes)
        figure.suptitle(self.title, fontsize=10, wrap=True)
        file = io.BytesIO()
        figure.savefig(file, dpi=140, format="png")
        plt.close(figure)
        return file.getvalue()


def as_published(inference: Algorithm) -> Algorithm:
    """Return an algorithm without searches for better states, which the papers' algorithms do not have."""
    has_search = "search" in inference.get_params(deep=False)
    return clone(inference).set_params(search=False) if has_search else inference


def mean_of(rows: Iterable[Row], value: str, **where: Any) -> float:
    """Mean of a column over the rows that agree with `where`; nan if there are none."""
    chosen = [row[value] for row in rows if all(row.get(key) == wanted for key, wanted in where.items())]
    return float(np.mean(chosen)) if chosen else float("nan")


def _as_csv(rows: list[Row]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def _number(value: Any) -> Any:
    """A number of NumPy as one that JSON knows."""
    return value.item()


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
