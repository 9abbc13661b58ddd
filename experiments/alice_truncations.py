"""*Alice* as a whole: does the number of states settle as the truncation grows, and what is it worth?

Truncations of 50, 100 and 200; 537 chunks to learn from, 126 held out. On so much text a truncation of 50 is full.
Beside the concentrations of the papers, ones that are learned with everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from experiments.alice_chapters import FINITE, outcome
from experiments.alice_chunks import SETTINGS, TRANSITIONS, whole_book
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.hierarchies import (
    SEARCH,
    Concentrations,
    Method,
    batch_methods,
    finite,
    names_of,
    shared_color,
)
from experiments.tagging import table

LEARNED = ", learned concentrations"
ITERATIONS = 80


class AliceTruncations(Experiment):
    """Held-out scores and numbers of states over truncations."""

    name = "alice_truncations"
    title = "Alice, all chapters: numbers of states over truncations"

    def __init__(self, *settings: Any, truncations: Iterable[int] = (50, 100, 200), **more: Any) -> None:
        super().__init__(*settings, **more)
        self.truncations = (10, 15) if self.quick else tuple(truncations)

    def _methods(self, n_states: int) -> dict[str, Method]:
        iterations = 5 if self.quick else ITERATIONS
        known = {name: finite(TRANSITIONS, n_states, kind(max_iter=iterations)) for name, kind in FINITE.items()}
        hierarchical = batch_methods(SETTINGS, iterations)
        names = [name for name in hierarchical if not name.startswith("direct, ")]
        known |= {name: hierarchical[name] for name in names}
        learned = batch_methods(Concentrations("learned", "learned"), iterations)
        return known | {f"{name}{LEARNED}": learned[name] for name in names if name.endswith(SEARCH)}

    def rows(self) -> Iterable[Row]:
        chunks = whole_book()
        for truncation in self.truncations:
            for name, method in self._methods(truncation).items():
                for seed in range(self.seeds):
                    where = {"truncation": truncation, "method": name, "seed": seed}
                    yield where | outcome(chunks, method, truncation, seed)

    # ---- what the rows say -------------------------------------------------------------------------------------------

    def claims(self, rows: list[Row]) -> list[Claim]:
        first = self.truncations[0]
        scores = {name: mean_of(rows, "score", truncation=first, method=name) for name in names_of(rows, "method")}
        collapsed, finite_collapsed, plain = scores["collapsed"], scores["HMM, collapsed"], scores["HMM"]
        shown = f"{collapsed:.3f}; finite {plain:.3f}, collapsed {finite_collapsed:.3f}"
        claims = [
            Claim(f"truncation {first}: collapsed reaches -1.93", collapsed >= -1.93, shown, self.quick),
            Claim(
                f"truncation {first}: collapsed is 0.03 ahead of the finite HMM", collapsed >= plain + 0.03, shown,
                self.quick,
            ),
            Claim(
                f"truncation {first}: what helps is collapsing, not the hierarchy",
                abs(collapsed - finite_collapsed) <= 0.02, shown, self.quick,
            ),
        ]  # fmt: skip
        names = [name for name in names_of(rows, "method") if name not in FINITE]
        return claims + [self._settles(rows, name) for name in names]

    def _settles(self, rows: list[Row], name: str) -> Claim:
        before, last = (mean_of(rows, "states", truncation=k, method=name) for k in self.truncations[-2:])
        text = f"{name}: the number of states does not depend on the truncation once it is large"
        shown = " -> ".join(f"{mean_of(rows, 'states', truncation=k, method=name):.1f}" for k in self.truncations)
        return Claim(text, last <= 1.1 * before, shown, doubted=True)

    def summary(self, rows: list[Row]) -> list[str]:
        heads = ("method", *(f"K = {k}: score (states; processor s)" for k in self.truncations))
        return [*table(heads, (self._line(rows, name) for name in names_of(rows, "method")))]

    def _line(self, rows: list[Row], name: str) -> Iterator[str]:
        yield name
        for k in self.truncations:
            score, states, seconds = (
                mean_of(rows, value, truncation=k, method=name) for value in ("score", "states", "processor")
            )
            yield f"{score:.4f} ({states:.1f}; {seconds:.0f})"

    def draw(self, rows: list[Row], axes: Any) -> None:
        names = names_of(rows, "method")
        colors = shared_color([name.removesuffix(LEARNED) for name in names])
        for name in names:
            style = ":" if name.endswith(LEARNED) else "--" if name.endswith(SEARCH) else "-"
            points = [
                [mean_of(rows, value, truncation=k, method=name) for k in self.truncations]
                for value in ("states", "score")
            ]
            axes.plot(*points, style, marker="o", color=colors[name.removesuffix(LEARNED)], label=name)
        axes.set_xlabel("states that cover 99 % (a point a truncation)")
        axes.set_ylabel("log likelihood a character")
        axes.legend(fontsize=6)
