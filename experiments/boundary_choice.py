"""Which boundary subchains should have: stationary, a buffer as long as the chain mixes, or guards.

Text, chromatin marks and Gaussian regimes, by SVI and SCVI, for several lengths of subchains; the score is the mean log
probability of held-out observations given all others, after one, two, five and twenty passes over the data. The rule of
`boundary="auto"` comes from this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from experiments.corpora import data_file, is_there
from experiments.experiment import Claim, Experiment, Row, as_published, mean_of
from experiments.text import one_chain
from subchain import HMM, SCVI, SVI, Bernoulli, Buffer, Categorical, Dirichlet, Gaussian, Guards, HoldOut, read
from subchain.data import Sequences, as_sequences

#: Passes after which a run is scored, and observations of an update.
PASSES, OBSERVATIONS = (1, 2, 5, 20), 2000
KINDS = {"SVI": SVI, "SCVI": SCVI}


class Case(NamedTuple):
    """Data, and the model that they are learned with."""

    data: Sequences
    n_states: int
    emission: Any
    transition: Any
    lengths: tuple[int, ...]
    #: Length of a buffer: steps after which a chain has forgotten its start under a good model.
    buffer: int


def text() -> Case:
    """Words of the Penn Treebank as one chain."""
    found = one_chain().words
    return Case(found, 12, Categorical(0.1, n_categories=10_000), Dirichlet(0.1), (2, 10, 50, 200), 20)


def chromatin() -> Case:
    """Ten marks along a chromosome, in two cell lines."""
    bins = read(data_file("chromatin", "chromhmm_hg18_chr11.npz"), array=["GM12878", "K562"])
    return Case(bins, 10, Bernoulli(), Dirichlet(), (10, 50, 200, 1000), 60)


def regimes(dwell: float, seed: int = 0) -> Case:
    """Six Gaussian regimes that last so long on the average, and overlap."""
    rng = np.random.default_rng(seed)
    transition = np.full((6, 6), 1.0 / dwell / 5.0)
    np.fill_diagonal(transition, 1.0 - 1.0 / dwell)
    means = 1.5 * rng.normal(size=(6, 2))
    emission = Gaussian.from_parameters(means, np.tile(np.eye(2), (6, 1, 1)))
    chain = HMM.from_parameters(np.full(6, 1 / 6), transition, emission).sample(300_000, random_state=seed)
    return Case(as_sequences(chain.observations), 6, Gaussian(), Dirichlet(), (10, 50, 200), int(4 * dwell))


CASES: dict[str, Callable[[], Case]] = {
    "text": text,
    "chromatin": chromatin,
    "short regimes": lambda: regimes(4.0),
    "long regimes": lambda: regimes(40.0),
}


def scores(case: Case, kind: str, length: int, boundary: str, seed: int, passes: int) -> dict[int, float]:
    """Return the held-out score after each number of passes."""
    batch = max(1, OBSERVATIONS // length)
    a_pass = max(1, round(case.data.n_observations / (batch * length)))
    chosen = {"stationary": "stationary", "buffer": Buffer(case.buffer), "guards": Guards()}[boundary]
    inference = KINDS[kind](
        length=length, batch=batch, boundary=chosen, max_updates=passes * a_pass, report_every=a_pass
    )
    model = HMM(
        case.n_states, case.emission, case.transition, as_published(inference), init="kmeans", random_state=seed,
        n_jobs=1, progress=False,
    )  # fmt: skip
    trace = model.fit(case.data, validation=HoldOut(0.02, random_state=0)).trace_
    return {done: trace.validation[done - 1] for done in PASSES if done <= passes}


class BoundaryChoice(Experiment):
    """Scores by data, algorithm, length, boundary and number of passes."""

    name = "boundary_choice"
    title = "Boundaries of subchains: which is best where"

    def rows(self) -> Iterable[Row]:
        for name, kind, length, boundary in self.cells():
            for seed in range(1, (1 if self.quick else self.seeds) + 1):
                found = scores(CASES[name](), kind, length, boundary, seed, 2 if self.quick else max(PASSES))
                for passes, score in found.items():
                    yield {
                        "data": name, "algorithm": kind, "length": length, "boundary": boundary, "seed": seed,
                        "passes": passes, "score": score,
                    }  # fmt: skip

    def cells(self) -> Iterator[tuple[str, str, int, str]]:
        """Yield data, algorithm, length and boundary of every cell; data that are missing are left out."""
        for name, make in CASES.items():
            if (name == "text" and not is_there("ptb")) or (name == "chromatin" and not is_there("chromatin")):
                continue
            for length in make().lengths[: 2 if self.quick else None]:
                for kind in KINDS:
                    for boundary in ("stationary", "buffer", "guards"):
                        yield name, kind, length, boundary

    def claims(self, rows: list[Row]) -> list[Claim]:
        def score(data: str, kind: str, length: int, boundary: str, passes: int) -> float:
            return mean_of(rows, "score", data=data, algorithm=kind, length=length, boundary=boundary, passes=passes)

        last, claims = max(row["passes"] for row in rows), []
        for data in sorted({row["data"] for row in rows}):
            length = min(row["length"] for row in rows if row["data"] == data)
            best = max(("stationary", "buffer", "guards"), key=lambda one: score(data, "SCVI", length, one, last))
            gain = score(data, "SCVI", length, best, last) - score(data, "SCVI", length, "stationary", last)
            claims.append(
                Claim(f"{data}: knowing the rest of the chain helps subchains of {length}", gain > 0.0, f"{gain:+.4f}")
            )
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        last = max(row["passes"] for row in rows)
        for data in sorted({row["data"] for row in rows}):
            own = [row for row in rows if row["data"] == data and row["algorithm"] == "SCVI" and row["passes"] == last]
            top = max(row["score"] for row in own)
            for boundary, style in (("stationary", ":"), ("buffer", "--"), ("guards", "-")):
                lengths = sorted({row["length"] for row in own})
                values = [
                    np.mean([r["score"] for r in own if r["length"] == n and r["boundary"] == boundary]) - top
                    for n in lengths
                ]
                axes.plot(lengths, values, style, label=f"{data}, {boundary}")
        axes.set(xscale="log", xlabel="length of a subchain", ylabel="held-out score below the best")
        axes.legend(fontsize=6)
