"""Wang (2016), figure 3.11: how soon tagging with a complete dictionary is as good as it gets.

Every point is a run of its own that ends after so many iterations. The sampler is cooled down within each run, so that
its curve is that of ever slower cooling. Seconds are those of the iterations, on one core.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.tagging import (
    NAMES,
    Priors,
    algorithms,
    block,
    cell,
    penn_sample,
    table,
    tag,
    with_dictionary,
)

POINTS = (1, 2, 5, 10, 20, 50)
SWEEPS = (10, 30, 100, 300, 1000, 3000)
PRIORS = Priors(1.0, 0.03)


class TaggingConvergence(Experiment):
    """Accuracy after numbers of iterations, and after seconds."""

    name = "tagging_convergence"
    title = "Accuracy with a complete dictionary against iterations (Wang 2016, figure 3.11)"
    needs = ("treebank",)

    def rows(self) -> Iterable[Row]:
        text = penn_sample()
        task = with_dictionary(block(text, 1, 1000 if self.quick else None), text, 1)
        for name in NAMES:
            priors = None if name == "EM" else PRIORS
            tag(task, algorithms(1, 2)[name], priors, "posteriors", 0)  # compiles, which is not to be timed
            for seed in range(self.seeds):
                for iterations in self._points(name):
                    found = tag(task, algorithms(iterations, iterations)[name], priors, "posteriors", seed)
                    yield {
                        "algorithm": name, "iterations": iterations, "seed": seed,
                        "accuracy": 100.0 * found.report.accuracy, "seconds": found.seconds,
                    }  # fmt: skip

    def _points(self, name: str) -> tuple[int, ...]:
        points = SWEEPS if name == "Gibbs" else POINTS
        return points[:-2] if self.quick else points

    def summary(self, rows: list[Row]) -> list[str]:
        written = []
        for names in (NAMES[:4], NAMES[4:]):
            lines = ([f"{n}", *(_entry(rows, name, n) for name in names)] for n in self._points(names[0]))
            written += table(("iterations", *names), lines)
        return written

    def claims(self, rows: list[Row]) -> list[Claim]:
        if self.quick:
            return []
        claims = []
        for name in NAMES[:4]:
            early, late = (mean_of(rows, "accuracy", algorithm=name, iterations=n) for n in (20, 50))
            claims.append(
                Claim(
                    f"{name} is within 0.3 of its end after twenty iterations",
                    abs(early - late) <= 0.3,
                    f"{early:.2f}, {late:.2f}",
                    published="converged after about twenty",
                    doubted=True,  # EM learns too much by then; single words of great frequency may move late
                )
            )
        slowest = max(mean_of(rows, "seconds", algorithm=name, iterations=50) for name in NAMES[:4])
        sampler = mean_of(rows, "seconds", algorithm="Gibbs", iterations=SWEEPS[-1])
        claims.append(
            Claim(
                "Gibbs takes longer than the slowest of the others",
                sampler > slowest,
                f"{sampler:.1f} s, {slowest:.1f} s",
                published="the thesis's sampler is in C++, the others in Python",
            )
        )
        fastest = min(NAMES[:4], key=lambda name: mean_of(rows, "seconds", algorithm=name, iterations=50))
        claims.append(Claim("CVI 1 is the fastest", fastest == "CVI 1", f"{fastest} is", True, "CVI 1 is"))
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        for number, name in enumerate(NAMES):
            points = self._points(name)
            seconds, accuracies = (
                [mean_of(rows, value, algorithm=name, iterations=n) for n in points]
                for value in ("seconds", "accuracy")
            )
            axes.plot(seconds, accuracies, "o-", color=f"C{number}", label=name)
            for n, x, y in zip(points, seconds, accuracies, strict=True):
                axes.annotate(str(n), (x, y), textcoords="offset points", xytext=(2, 3), fontsize=6)
        axes.set_xscale("log")
        axes.set_xlabel("seconds (numbers: iterations)")
        axes.set_ylabel("accuracy")
        axes.legend()


def _entry(rows: list[Row], name: str, iterations: int) -> str:
    accuracy = cell(rows, "accuracy", 2, algorithm=name, iterations=iterations)
    return f"{accuracy} ({mean_of(rows, 'seconds', algorithm=name, iterations=iterations):.2f} s)"
