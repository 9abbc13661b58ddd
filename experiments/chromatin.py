"""Chromatin marks along a chromosome: SVI and SCVI beside batch inference, and what the states have to do with genes.

Ten marks, present or absent in bins of 200 base pairs, for two cell lines (ChromHMM's example data); twenty states. A
twentieth of the bins is held out. States are then asked how much more often they stand where a transcript starts than
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.corpora import data_file
from experiments.experiment import Claim, Experiment, Row, as_published, mean_of
from subchain import EM, HMM, SCVI, SVI, VI, Bernoulli, Buffer, Guards, HoldOut

CELLS = ("GM12878", "K562")
STATES = 20
BIN = 200
#: A batch run's passes, and the stochastic runs' share of them.
ITERATIONS, PASSES = 200, 40.0


class Chromatin(Experiment):
    """Held-out scores and enrichments of both cell lines."""

    name = "chromatin"
    title = "Chromatin marks of chromosome 11: held-out bins, and states at transcription starts"
    needs = ("chromatin",)

    def rows(self) -> Iterable[Row]:
        marks = np.load(data_file("chromatin", "chromhmm_hg18_chr11.npz"))
        starts = np.loadtxt(
            data_file("chromatin", "refseq_tss_chr11.tsv"), skiprows=1, usecols=0, dtype=np.int64, delimiter="\t"
        )
        for cell in CELLS[:1] if self.quick else CELLS:
            bins = marks[cell].astype(np.int8)
            genes = np.unique(starts // BIN)
            for seed in range(self.seeds):
                for name, inference in self._algorithms().items():
                    model = HMM(
                        STATES,
                        Bernoulli(),
                        inference=as_published(inference),
                        init="kmeans",
                        random_state=seed,
                        progress=False,
                    )
                    model.fit(bins, validation=HoldOut(0.05, random_state=1))
                    trace = model.trace_
                    yield {
                        "cell": cell, "algorithm": name, "seed": seed, "score": trace.validation[-1],
                        "seconds": trace.seconds[-1] - sum(trace.measures["scoring"]),
                        "enrichment": enrichment(model, bins, genes),
                    }  # fmt: skip

    def _algorithms(self) -> dict[str, Any]:
        share = 0.1 if self.quick else 1.0
        limits: dict[str, Any] = {"max_passes": PASSES * share, "report_every": 500, "forgetting": 0.6}
        return {
            "VI": VI(max_iter=int(ITERATIONS * share), tolerance=1e-7),
            "EM": EM(max_iter=int(ITERATIONS * share), tolerance=1e-7),
            "SVI": SVI(length=200, batch=10, boundary=Buffer(20), **limits),
            "SCVI": SCVI(length=200, batch=10, boundary=Guards(), **limits),
        }

    def claims(self, rows: list[Row]) -> list[Claim]:
        claims = []
        for cell in dict.fromkeys(row["cell"] for row in rows):
            for name in ("SVI", "SCVI"):
                ours, batch = (mean_of(rows, "score", cell=cell, algorithm=kind) for kind in (name, "VI"))
                claims.append(
                    Claim(f"{cell}: {name} is within 0.01 of batch VI", ours > batch - 0.01, f"{ours:.4f}, {batch:.4f}")
                )
            best = min(row["enrichment"] for row in rows if row["cell"] == cell)
            claims.append(
                Claim(f"{cell}: a state is at least ten times as frequent at starts", best > 10.0, f"{best:.1f} times")
            )
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        for number, name in enumerate(self._algorithms()):
            chosen = [row for row in rows if row["algorithm"] == name]
            axes.scatter(
                [row["seconds"] for row in chosen], [row["score"] for row in chosen], color=f"C{number}", label=name
            )
        axes.set_xscale("log")
        axes.set_xlabel("seconds")
        axes.set_ylabel("log probability of a held-out bin")
        axes.legend()


def enrichment(model: HMM, bins: NDArray[np.int8], genes: NDArray[np.int64]) -> float:
    """How many times as frequent the most telling state is where transcripts start as it is everywhere."""
    states = np.asarray(model.predict(bins))
    everywhere = np.bincount(states, minlength=STATES) / len(states)
    at_starts = np.bincount(states[genes[genes < len(states)]], minlength=STATES)
    counted = at_starts >= 20  # a state that is seldom seen there says little
    return float(((at_starts / at_starts.sum())[counted] / everywhere[counted]).max())
