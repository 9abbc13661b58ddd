"""Zhang, Gultekin & Paisley (2016), figure 4, and Wang (2016), figure 5.8: stochastic inference of music in codewords.

Sequences of 50 codewords out of 256, 634 of them held out. Every method learns for the same time; the score is the log
likelihood of a held-out sequence. Finite models over numbers of states beside models that find the number by themselves
from a truncation of 500, and beam sampling, which has to do with a thousand sequences. Times on the clock say little on
a machine with other work to do; so the cost of an update is also measured in seconds of the processor, method after
method in turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.corpora import data_file
from experiments.experiment import Claim, Experiment, Row, mean_of
from experiments.hierarchies import (
    SEARCH,
    Concentrations,
    Learned,
    Method,
    beam,
    chosen,
    finite,
    learn,
    names_of,
    panels,
    shared_color,
    states_of,
    stochastic_methods,
)
from experiments.tagging import table
from subchain import CVI, SCVI, SVI, Categorical
from subchain.data import Sequences

CODEWORDS = 256
SETTINGS, TRANSITIONS = Concentrations(3.0, 20.0), 20.0
FINITE = {"SVI": SVI, "SCVI": SCVI}
STATES = (50, 100, 200, 250, 300, 500)
#: Seconds that a method learns for, if nothing else was said.
BUDGET, QUICK_BUDGET = 900.0, 10.0
DELAY, FORGETTING = 100.0, 0.6
#: Updates and rounds of the measurement of speed.
TIMED, ROUNDS = 20, 2
#: Sequences that methods are given which look at all of them in every sweep, and how many of them they take at a time.
SUBSET, TOGETHER = 1000, 10
#: Sweeps, or iterations, that hardly any such run reaches.
ENDLESS = 2000
#: Updates of runs that end by the clock.
UNLIMITED = 10**9


class Updates(NamedTuple):
    """Sequences of an update, and updates between two scores."""

    batch: int
    report: int

    def settings(self) -> dict[str, Any]:
        """What all stochastic runs have in common."""
        return {
            "length": None, "batch": self.batch, "delay": DELAY, "forgetting": FORGETTING, "report_every": self.report
        }  # fmt: skip


#: Of the sizes that the papers say make no difference the one that learns faster; for the measurement of speed the one
#: that both papers have.
LEARNING, TIMING = Updates(64, 50), Updates(256, 10)


class Pieces(NamedTuple):
    """Sequences to learn from, and held-out ones."""

    train: Sequences
    test: Sequences


class Music(Experiment):
    """Scores against time, numbers of states, and the cost of updates."""

    name = "music"
    title = "Music in codewords (Zhang et al. 2016, figure 4; Wang 2016, figure 5.8)"
    needs = ("audio",)

    @property
    def _states(self) -> tuple[int, ...]:
        return (20, 40) if self.quick else STATES

    @property
    def _seconds(self) -> float:
        return self.budget or (QUICK_BUDGET if self.quick else BUDGET)

    def _methods(self, updates: Updates = LEARNING, **limits: Any) -> dict[str, Method]:
        """Methods that find the number of states."""
        return stochastic_methods(SETTINGS, **updates.settings(), **limits)

    def rows(self) -> Iterable[Row]:
        pieces = music()
        for seed in range(self.seeds):
            yield from self._finite_courses(pieces, seed)
            for name, method in self._methods(time_limit=self._seconds, max_updates=UNLIMITED).items():
                yield from course(pieces, name, method, max(self._states), seed)
            yield from self._on_a_subset(pieces, seed)
        yield from self._speeds(pieces)

    def _finite_courses(self, pieces: Pieces, seed: int) -> Iterator[Row]:
        for name in FINITE:
            for n_states in self._states:
                method = _finite(name, n_states, time_limit=self._seconds, max_updates=UNLIMITED)
                yield from course(pieces, name, method, n_states, seed)

    def _on_a_subset(self, pieces: Pieces, seed: int) -> Iterator[Row]:
        few, n_states = pieces._replace(train=pieces.train[:SUBSET]), max(self._states)
        together = CVI(max_iter=ENDLESS, time_limit=self._seconds, cluster_size=TOGETHER)
        batch = Method(SETTINGS.prior("collapsed", True), together)
        known = {"beam": beam(SETTINGS, ENDLESS, self._seconds), f"collapsed CVI{SEARCH}": batch}
        for name, method in known.items():
            init = "states" if name == "beam" else "exponential"
            learned = learn(method, few.train, n_states, codewords(), seed, init)
            score = float(learned.model.score(few.test)) / len(few.test)
            yield {
                "part": "course", "method": f"{name}, {SUBSET} sequences", "K": n_states, "seed": seed, "last": True,
                "updates": len(learned.model.trace_), "learning": learned.seconds, "score": score,
                "states": states_of(learned.model, 0.99),
            }  # fmt: skip

    def _speeds(self, pieces: Pieces) -> Iterator[Row]:
        """Seconds of an update, the methods in turns; a first round, in which code is compiled, does not count."""
        for n_states in self._states[:1] if self.quick else (50, 100, 200, 500):
            updates = TIMED if self.quick else TIMED * 500 // n_states  # a run's beginning must not count for much
            known = {name: _finite(name, n_states, TIMING, max_updates=updates) for name in FINITE}
            hierarchical = self._methods(TIMING, max_updates=updates)
            known |= {name: method for name, method in hierarchical.items() if not name.endswith(SEARCH)}
            for turn in range(-1, ROUNDS):
                for name, method in known.items():
                    learned = learn(method, pieces.train, n_states, codewords(), 0)
                    if turn >= 0:
                        yield {"part": "speed", "method": name, "K": n_states, "seed": turn} | _an_update(learned)

    # ---- what the rows say -------------------------------------------------------------------------------------------

    def claims(self, rows: list[Row]) -> list[Claim]:
        ends = chosen(rows, part="course", last=True)
        scores = {name: mean_of(ends, "score", method=name) for name in names_of(ends, "method") if name not in FINITE}
        best = {name: max(self._finite_scores(ends, name).values()) for name in FINITE}
        claims = [self._levels_off(ends)]
        for name, score in scores.items():
            rival = "SCVI" if name.startswith("collapsed") else "SVI"
            shown = f"{score:.2f}, {best[rival]:.2f}"
            published = "roughly equal" if name == "sticks" else ""
            text = f"{name} is as good as the best {rival}"
            claims.append(Claim(text, score >= best[rival] - 0.5, shown, True, published))
        for first, second, published in (
            ("sticks", "direct", "ahead"), (f"direct{SEARCH}", "direct", "slightly"),
            ("sticks", f"direct{SEARCH}", "ahead"), ("collapsed", "direct", "significantly"),
            ("collapsed", "sticks", "significantly"), (f"collapsed{SEARCH}", "collapsed", ""),
        ):  # fmt: skip
            claims.append(_ahead(rows, first, second, max(self._states), published))
        sampled = f"beam, {SUBSET} sequences"
        for name in ("sticks", "collapsed"):
            shown = f"{scores[name]:.2f}, {scores[sampled]:.2f}"
            published = "ahead, since it uses more data" if name == "sticks" else ""
            text = f"{name} is ahead of {sampled}"
            claims.append(Claim(text, scores[name] > scores[sampled], shown, True, published))
        return claims + self._costs(rows)

    def _finite_scores(self, ends: list[Row], name: str) -> dict[int, float]:
        return {n_states: mean_of(ends, "score", method=name, K=n_states) for n_states in self._states}

    def _levels_off(self, ends: list[Row]) -> Claim:
        scores = self._finite_scores(ends, "SVI")
        shown = ", ".join(f"{n_states}: {score:.2f}" for n_states, score in scores.items())
        best = max(scores, key=lambda n_states: scores[n_states])
        text = "SVI of a finite model is best with 200 to 300 states"
        return Claim(text, 200 <= best <= 300, shown, True, "stops rising at 200 to 250")

    def _costs(self, rows: list[Row]) -> list[Claim]:
        """Updates of hierarchical models against those of the finite ones they have their surrogate from."""
        claims, largest = [], max(row["K"] for row in rows if row["part"] == "speed")
        for name in names_of(chosen(rows, part="speed"), "method"):
            if name not in FINITE:
                rival = "SCVI" if name == "collapsed" else "SVI"
                ours, theirs = (_fastest(rows, which, largest) for which in (name, rival))
                text = f"K = {largest}: an update of {name} takes at most 1.5 times that of {rival}"
                shown = f"{ours:.3f} s, {theirs:.3f} s of the processor: {ours / theirs:.2f}"
                claims.append(Claim(text, ours <= 1.5 * theirs, shown, doubted=self.quick))
        return claims

    def summary(self, rows: list[Row]) -> list[str]:
        ends, speeds = chosen(rows, part="course", last=True), chosen(rows, part="speed")
        cases = dict.fromkeys((row["method"], row["K"]) for row in ends)
        heads = ("method", "K", "log likelihood a sequence", "states", "updates", "s of learning")
        lines = (_line(ends, *case) for case in cases)
        sizes = names_of(speeds, "K")
        of_updates = (
            [name, *(f"{_fastest(rows, name, size):.3f}" for size in sizes)] for name in names_of(speeds, "method")
        )
        return [
            f"{self._seconds:.0f} s a method", *table(heads, lines),
            "seconds of the processor an update", *table(("method", *(f"K = {size}" for size in sizes)), of_updates),
        ]  # fmt: skip

    def draw(self, rows: list[Row], axes: Any) -> None:
        over_time, over_states, costs = panels(axes, 1, 3, (4.5, 4.5))
        courses, ends = chosen(rows, part="course"), chosen(rows, part="course", last=True)
        names = [name for name in names_of(courses, "method") if name not in FINITE]
        colors = shared_color(names)
        for name in names:
            runs = chosen(courses, method=name, seed=0)
            style = "--" if name.endswith(SEARCH) else "-"
            marker = "o" if len(runs) == 1 else None
            points = [[row[value] for row in runs] for value in ("learning", "score")]
            over_time.plot(*points, style, marker=marker, color=colors[name], label=name)
            score = mean_of(ends, "score", method=name)
            over_states.scatter([mean_of(ends, "states", method=name)], [score], color=colors[name], label=name)
        for name, style in zip(FINITE, ("k--", "k-"), strict=True):
            scores = self._finite_scores(ends, name)
            over_states.plot(list(scores), list(scores.values()), style, label=f"{name}, finite")
        speeds = chosen(rows, part="speed")
        for name in names_of(speeds, "method"):
            sizes = names_of(speeds, "K")
            costs.loglog(sizes, [_fastest(rows, name, size) for size in sizes], marker=".", label=name)
        over_time.set_xlabel("seconds of learning")
        over_time.set_ylabel("log likelihood a held-out sequence")
        over_states.set_xlabel("states (of hierarchical models: that cover 99 %)")
        costs.set_xlabel("K")
        costs.set_ylabel("seconds of the processor an update")
        for panel in (over_time, over_states, costs):
            panel.legend(fontsize=6)


def music() -> Pieces:
    """The data."""
    with np.load(data_file("audio", "music_codewords.npz")) as file:
        return Pieces(_sequences(file["train"]), _sequences(file["test"]))


def codewords() -> Categorical:
    """The prior of the codewords."""
    return Categorical(0.1, n_categories=CODEWORDS)


def course(pieces: Pieces, name: str, method: Method, n_states: int, seed: int) -> Iterator[Row]:
    """Scores along a run; what scoring took is no time of learning."""
    model = learn(method, pieces.train, n_states, codewords(), seed, validation=pieces.test).model
    trace, length = model.trace_, pieces.test.n_observations / len(pieces.test)
    learning = np.array(trace.seconds) - np.cumsum(trace.measures["scoring"])
    where = {"part": "course", "method": name, "K": n_states, "seed": seed}
    for number, (update, seconds, score) in enumerate(
        zip(trace.measures["updates"], learning, trace.validation, strict=True), 1
    ):
        point = {"updates": int(update), "learning": float(seconds), "score": score * length}
        last = number == len(trace)
        yield where | {"last": last} | point | ({"states": states_of(model, 0.99)} if last else {})


def _sequences(codes: NDArray[np.uint8]) -> Sequences:
    """One sequence a row."""
    n_sequences, length = codes.shape
    return Sequences(codes.reshape(-1).astype(np.int32), length * np.arange(n_sequences + 1))


def _finite(name: str, n_states: int, updates: Updates = LEARNING, **limits: Any) -> Method:
    return finite(TRANSITIONS, n_states, FINITE[name](**updates.settings(), **limits))


def _an_update(learned: Learned) -> dict[str, float]:
    """Seconds of an update: on the clock without the first ones, and of the processor with them."""
    trace = learned.model.trace_
    seconds, updates = trace.seconds, trace.measures["updates"]
    clock = (seconds[-1] - seconds[0]) / (updates[-1] - updates[0])
    return {"seconds": clock, "processor": learned.processor / updates[-1]}


def _ahead(rows: list[Row], first: str, second: str, n_states: int, published: str) -> Claim:
    """The claim that one method is ahead of another after as many updates, which takes the load off the clock."""
    courses = [chosen(rows, part="course", method=name, K=n_states) for name in (first, second)]
    updates = min(row["updates"] for runs in courses for row in chosen(runs, last=True))
    scores = [float(np.mean([_score_at(chosen(runs, seed=seed), updates) for seed in names_of(runs, "seed")]))
              for runs in courses]  # fmt: skip
    shown = f"{scores[0]:.2f}, {scores[1]:.2f}"
    text = f"{first} is ahead of {second} after {updates} updates"
    return Claim(text, scores[0] > scores[1], shown, True, published)


def _score_at(course: list[Row], updates: int) -> float:
    return float(np.interp(updates, [row["updates"] for row in course], [row["score"] for row in course]))


def _fastest(rows: list[Row], name: str, n_states: int) -> float:
    """Seconds of the processor, in the round that was disturbed least."""
    return min(row["processor"] for row in chosen(rows, part="speed", method=name, K=n_states))


def _line(ends: list[Row], name: str, n_states: int) -> Iterator[str]:
    yield from (name, str(n_states))
    for value, digits in (("score", 2), ("states", 1), ("updates", 0), ("learning", 1)):
        yield f"{mean_of(ends, value, method=name, K=n_states):.{digits}f}"
