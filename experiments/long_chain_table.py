"""Foti et al. (2014), table 1: time and held-out score on three million observations, beside batch inference."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from experiments.experiment import Claim, Experiment, Row, as_published, mean_of
from subchain import HMM, SVI, VI, Gaussian, HoldOut
from subchain.datasets import reversed_cycles


class Published(NamedTuple):
    """A row of the paper's table."""

    seconds: float
    an_iteration: float
    score: float


#: The paper's table: half the length of subchains, and batch inference.
PUBLISHED = {
    100: Published(2.74, 0.03, -5.915),
    500: Published(11.79, 0.12, -5.850),
    1000: Published(23.17, 0.23, -5.850),
}
BATCH = Published(1240.73, 248.15, -5.840)
HALVES = tuple(PUBLISHED)
#: A tenth of the observations is held out.
SHARE = 0.1


class LongChainTable(Experiment):
    """Rows of the table: half the length of subchains, or batch."""

    name = "long_chain_table"
    title = "Time and held-out score on reversed cycles, three million observations (Foti et al. 2014, table 1)"

    def rows(self) -> Iterable[Row]:
        chain = reversed_cycles(300_000 if self.quick else 3_000_000, random_state=0)
        held_out = HoldOut(SHARE, random_state=1)
        for seed in range(self.seeds):
            for half in HALVES:
                inference = SVI(length=2 * half + 1, batch=10, forgetting=0.5, max_updates=100, report_every=100)
                yield self._row(chain, held_out, f"{half}", inference, seed)
            yield self._row(chain, held_out, "batch", VI(max_iter=20), seed)

    def _row(self, chain: Any, held_out: HoldOut, name: str, inference: Any, seed: int) -> Row:
        emission = Gaussian(mean_strength=1.0, degrees=10.0)
        model = HMM(8, emission, inference=as_published(inference), init="kmeans", random_state=seed, progress=False)
        model.fit(chain.observations, validation=held_out)
        trace = model.trace_
        iterations = len(trace) if name == "batch" else int(trace.measures["updates"][-1])
        seconds = trace.seconds[-1] - sum(trace.measures["scoring"])
        return {
            "half": name, "seed": seed, "seconds": seconds, "iteration": seconds / iterations,
            "score": trace.validation[-1],
        }  # fmt: skip

    def claims(self, rows: list[Row]) -> list[Claim]:
        batch_score, one_pass = mean_of(rows, "score", half="batch"), mean_of(rows, "iteration", half="batch")
        claims = []
        for half, published in PUBLISHED.items():
            score, seconds = mean_of(rows, "score", half=str(half)), mean_of(rows, "seconds", half=str(half))
            claims.append(
                Claim(
                    f"⌊L/2⌋ = {half}: within 0.01 of batch inference",
                    score > batch_score - 0.01,
                    f"{score:.4f}, {batch_score:.4f}",
                    published=f"{published.score}, {BATCH.score}",
                )
            )
            claims.append(
                Claim(
                    f"⌊L/2⌋ = {half}: faster than one batch iteration",
                    seconds < one_pass,
                    f"{seconds:.3f} s, {one_pass:.3f} s",
                    doubted=self.quick,  # a batch iteration over a tenth of the data takes a tenth of the time
                    published=f"{published.seconds} s, {BATCH.an_iteration} s",
                )
            )
        claims.append(
            Claim(
                "a batch iteration takes a hundredth of the paper's",
                one_pass < BATCH.an_iteration / 100.0,
                f"{one_pass:.3f} s",
                published=f"{BATCH.an_iteration} s",
            )
        )
        return claims

    def draw(self, rows: list[Row], axes: Any) -> None:
        for name in (*map(str, HALVES), "batch"):
            chosen = [row for row in rows if row["half"] == name]
            axes.scatter([row["seconds"] for row in chosen], [row["score"] for row in chosen], label=name)
        axes.set_xscale("log")
        axes.set_xlabel("seconds")
        axes.set_ylabel("held-out log probability")
        axes.legend(title="⌊L/2⌋")
