"""Wang (2016), figure 3.15: SVI and SCVI on a bag of sentences, over forgetting rates and sizes of minibatches.

Penn Treebank text, nine tenths of the sentences to learn from; the score is the log probability of the others, a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from experiments.experiment import Claim, Experiment, Row, as_published, mean_of
from experiments.text import ORDER, sentences
from subchain import HMM, SCVI, SVI, VI, Categorical, Dirichlet
from subchain.data import Sequences, as_sequences

#: One sentence in so many is a test sentence.
TEST = 10
STATES = 45
PASSES = 5.0


class Sentences(Experiment):
    """Scores against time, for three forgetting rates and three sizes."""

    name = "sentences"
    title = "Held-out sentences (Wang 2016, figure 3.15)"
    needs = ("ptb",)

    def _data(self) -> tuple[Sequences, Sequences]:
        lines = sentences()
        order = np.random.default_rng(ORDER).permutation(len(lines))[: 4000 if self.quick else None]
        data = as_sequences([lines[line] for line in order])
        test = np.arange(data.n_sequences) % TEST == 0
        return data[~test], data[test]

    def _cells(self) -> Iterator[tuple[float, int]]:
        yield from ((forgetting, 100) for forgetting in (0.5, 0.7, 0.9))
        yield from ((0.5, size) for size in (20, 500))

    def rows(self) -> Iterable[Row]:
        train, test = self._data()
        for seed in range(self.seeds):
            for kind in (SVI, SCVI):
                for forgetting, size in self._cells():
                    every = max(train.n_sequences // size // 4, 1)
                    inference = kind(
                        length=None, batch=size, forgetting=forgetting, max_passes=PASSES, report_every=every
                    )
                    yield from self._course(kind.__name__, forgetting, size, inference, train, test, seed)
        yield from self._course("VI", 0.0, 0, VI(max_iter=20 if self.quick else 50), train, test, 0)

    def _course(
        self, name: str, forgetting: float, size: int, inference: Any, train: Sequences, test: Sequences, seed: int
    ) -> Iterator[Row]:
        model = HMM(
            STATES,
            Categorical(0.1),
            Dirichlet(0.1),
            as_published(inference),
            init="exponential",
            random_state=seed,
            progress=False,
        )
        trace = model.fit(train, validation=test).trace_
        for number, (seconds, score) in enumerate(zip(trace.seconds, trace.validation, strict=True)):
            yield {
                "algorithm": name, "forgetting": forgetting, "batch": size, "seed": seed, "seconds": seconds,
                "score": score, "last": number == len(trace) - 1,
            }  # fmt: skip

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for forgetting, size in self._cells():
            svi, scvi = (
                mean_of(rows, "score", algorithm=name, forgetting=forgetting, batch=size, last=True)
                for name in ("SVI", "SCVI")
            )
            claims.append(
                Claim(
                    f"SCVI is ahead at forgetting {forgetting}, {size} sentences",
                    scvi > svi,
                    f"{scvi:.3f}, {svi:.3f}",
                    doubted=self.quick,  # a tenth of the sentences
                    published="significantly more accurate in each setting",
                )
            )
        best = {
            name: max(self._cells(), key=lambda cell, name=name: mean_of(  # type: ignore[misc]
                rows, "score", algorithm=name, forgetting=cell[0], batch=100, last=True))[0]
            for name in ("SVI", "SCVI")
        }  # fmt: skip
        holds = set(best.values()) == {0.5}
        claims.append(Claim("forgetting 0.5 is the best for both", holds, str(best), published="0.5 for both"))
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        for name, style in (("SVI", "--"), ("SCVI", "-")):
            for number, (forgetting, size) in enumerate(self._cells()):
                course = [
                    row for row in rows
                    if (row["algorithm"], row["forgetting"], row["batch"], row["seed"]) == (name, forgetting, size, 0)
                ]  # fmt: skip
                label = f"{name}, forgetting {forgetting}, {size}"
                seconds, scores = [row["seconds"] for row in course], [row["score"] for row in course]
                axes.plot(seconds, scores, style, color=f"C{number}", label=label)
        batch = [row for row in rows if row["algorithm"] == "VI"]
        axes.plot([row["seconds"] for row in batch], [row["score"] for row in batch], "k:", label="VI")
        axes.set_xscale("log")
        axes.set_xlabel("seconds, scoring included")
        axes.set_ylabel("log probability a word")
        axes.legend(fontsize=6)
