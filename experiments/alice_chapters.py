"""Zhang, Gultekin & Paisley (2016), figure 3: the chapters of *Alice*, one at a time, characters predicted.

Finite models over numbers of states, by variational and by collapsed inference, beside models that find the number by
themselves from a truncation of 50. The paper judges by a bound of held-out chunks; here it is their log likelihood a
character under the posterior mean, which means the same for all methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from experiments.alice_chunks import SETTINGS, TRANSITIONS, Chunks, chapter, letters
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.hierarchies import (
    MEAN_FIELD,
    SEARCH,
    Method,
    batch_methods,
    chosen,
    finite,
    learn,
    names_of,
    panels,
    score_of,
    shared_color,
    states_of,
)
from experiments.tagging import table
from subchain import CVI, VI

CHAPTERS = range(1, 13)
STATES = (5, 10, 15, 20, 25, 30, 40, 50)
TRUNCATION, ITERATIONS = 50, 100
FINITE = {"HMM": VI, "HMM, collapsed": CVI}


class AliceChapters(Experiment):
    """Held-out scores and numbers of states, chapter by chapter."""

    name = "alice_chapters"
    title = "Alice, chapter by chapter (Zhang et al. 2016, figure 3)"

    def rows(self) -> Iterable[Row]:
        iterations, states = (5, (5, 10)) if self.quick else (ITERATIONS, STATES)
        methods = batch_methods(SETTINGS, iterations)
        methods.pop(MEAN_FIELD + SEARCH)
        for number in CHAPTERS[:2] if self.quick else CHAPTERS:
            chunks = chapter(number)
            for seed in range(self.seeds):
                where = {"chapter": number, "seed": seed}
                for name, kind in FINITE.items():
                    for n_states in states:
                        method = finite(TRANSITIONS, n_states, kind(max_iter=iterations))
                        yield where | {"method": name, "K": n_states} | outcome(chunks, method, n_states, seed)
                for name, method in methods.items():
                    truncation = max(states)
                    yield where | {"method": name, "K": truncation} | outcome(chunks, method, truncation, seed)

    # ---- what the rows say -------------------------------------------------------------------------------------------

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = [_overfits(rows)]
        for name in ("collapsed", f"collapsed{SEARCH}", "direct", "sticks", f"sticks{SEARCH}"):
            claims += [_beats_finite(rows, name, rival) for rival in FINITE]
            claims.append(_between(rows, name))
        for value, more, less, text, published in (
            ("states", MEAN_FIELD, "direct", "mean field believes in more states than direct", "far too many"),
            ("score", "sticks", "direct", "sticks predict better than direct", "in general"),
            ("states", "direct", "sticks", "sticks need fewer states than direct", "slightly fewer"),
        ):
            claims.append(_in_every_chapter(rows, value, more, less, text, published))
        return claims

    def summary(self, rows: list[Row]) -> list[str]:
        names = [name for name in names_of(rows, "method") if name not in FINITE]
        heads = ("chapter", *(f"best {name} (K)" for name in FINITE), *(f"{name} (states)" for name in names))
        return [*table(heads, (_line(rows, number, names) for number in names_of(rows, "chapter")))]

    def draw(self, rows: list[Row], axes: Any) -> None:
        names = [name for name in names_of(rows, "method") if name not in FINITE]
        colors, chapters = shared_color(names), names_of(rows, "chapter")
        columns = min(len(chapters), 4)
        places = panels(axes, -(-len(chapters) // columns), columns, (3.0, 2.4))
        for number, panel in zip(chapters, places, strict=True):
            for name, style in zip(FINITE, ("k.-", "k.:"), strict=True):
                course = _course(rows, number, name)
                panel.plot(list(course), list(course.values()), style, label=name)
            for name in names:
                style = "--" if name.endswith(SEARCH) else "-"
                score, states = (mean_of(rows, value, chapter=number, method=name) for value in ("score", "states"))
                panel.axhline(score, linestyle=style, color=colors[name], linewidth=0.9, label=name)
                panel.axvline(states, linestyle=style, color=colors[name], linewidth=0.5)
            panel.set_xlabel(f"chapter {number}: states", fontsize=8)
        axes.set_ylabel("log likelihood a character")
        axes.legend(fontsize=5)


def outcome(chunks: Chunks, method: Method, n_states: int, seed: int) -> dict[str, Any]:
    """Score, number of states and time of one run."""
    learned = learn(method, chunks.train, n_states, letters(), seed)
    model = learned.model
    return {
        "score": score_of(model, chunks.test), "states": states_of(model, 0.99), "states 99.5": states_of(model, 0.995),
        "iterations": len(model.trace_),
    } | learned.times()  # fmt: skip


# ---- claims ----------------------------------------------------------------------------------------------------------


def _course(rows: list[Row], number: int, name: str) -> dict[int, float]:
    """Mean scores of a finite model over its numbers of states."""
    runs = chosen(rows, chapter=number, method=name)
    return {n_states: mean_of(runs, "score", K=n_states) for n_states in names_of(runs, "K")}


def _best(rows: list[Row], number: int, name: str) -> tuple[int, float]:
    """Number of states with the best mean score, and the score."""
    course = _course(rows, number, name)
    best = max(course, key=lambda n_states: course[n_states])
    return best, course[best]


def _overfits(rows: list[Row]) -> Claim:
    best = {number: _best(rows, number, "HMM")[0] for number in names_of(rows, "chapter")}
    largest = max(names_of(rows, "K"))
    shown = "best K by chapter: " + ", ".join(map(str, best.values()))
    holds = all(k < largest for k in best.values())
    return Claim("the HMM predicts worse with too many states", holds, shown, True, "too large an HMM may overfit")


def _beats_finite(rows: list[Row], name: str, rival: str) -> Claim:
    gains = [
        mean_of(rows, "score", chapter=number, method=name) - _best(rows, number, rival)[1]
        for number in names_of(rows, "chapter")
    ]
    text = f"{name} predicts better than the best {rival} in every chapter"
    shown = f"{sum(gain > 0.0 for gain in gains)} of {len(gains)}, by {np.mean(gains):+.3f} on the average"
    published = "in every chapter" if (name, rival) == ("sticks", "HMM") else ""
    return Claim(text, min(gains) > 0.0, shown, True, published)


def _between(rows: list[Row], name: str) -> Claim:
    states = [mean_of(rows, "states 99.5", chapter=number, method=name) for number in names_of(rows, "chapter")]
    text = f"{name} uses 21 to 27 states, depending on the chapter"
    holds, shown = min(states) >= 21.0 and max(states) <= 27.0, f"{min(states):.1f} to {max(states):.1f}"
    return Claim(text, holds, shown, True, "21.4 to 26.4" if name == "sticks" else "")


def _in_every_chapter(rows: list[Row], value: str, more: str, less: str, text: str, published: str) -> Claim:
    pairs = [
        [mean_of(rows, value, chapter=number, method=name) for name in (more, less)]
        for number in names_of(rows, "chapter")
    ]
    number = sum(first > second for first, second in pairs)
    means = np.mean(pairs, axis=0)
    shown = f"{number} of {len(pairs)}, {means[0]:.3f} against {means[1]:.3f} on the average"
    return Claim(f"{text} in every chapter", number == len(pairs), shown, True, published)


def _line(rows: list[Row], number: int, names: list[str]) -> Iterator[str]:
    yield str(number)
    for name in FINITE:
        best, score = _best(rows, number, name)
        yield f"{score:.3f} ({best})"
    for name in names:
        score, states = (mean_of(rows, value, chapter=number, method=name) for value in ("score", "states"))
        yield f"{score:.3f} ({states:.1f})"
