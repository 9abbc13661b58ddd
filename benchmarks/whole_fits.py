"""Whole fits beside hmmlearn: how long a call of `fit` takes, from small data to large.

    python -m benchmarks.whole_fits

Both packages run the same number of EM iterations from the same parameters, in double precision, on one thread, and
must arrive at the same log likelihood. `throughput` measures single iterations of large problems; this is about what a
user waits for, checks and set-up of the call included. Seconds are those of the processor, which a busy machine changes
little; the best of several calls counts. Compilation is done beforehand (`startup` measures it).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.tables import wide_console
from subchain import EM, HMM, Categorical, Gaussian
from subchain.datasets import categorical_chain, gaussian_chain

ITERATIONS = 20
#: Title, and what draws the chain.
CASES: list[tuple[str, Callable[[], Any]]] = [
    ("100 numbers, K = 3", lambda: gaussian_chain(100, 3, 1, stickiness=0.9, random_state=0)),
    ("1,000 × 2 numbers, K = 4", lambda: gaussian_chain(1_000, 4, 2, stickiness=0.9, random_state=0)),
    ("10,000 × 2 numbers, K = 4", lambda: gaussian_chain(10_000, 4, 2, stickiness=0.9, random_state=0)),
    ("500 sequences of 20 symbols, K = 8", lambda: categorical_chain(lengths=[20] * 500, n_states=8, random_state=0)),
    ("100,000 × 2 numbers, K = 8", lambda: gaussian_chain(100_000, 8, 2, stickiness=0.9, random_state=0)),
    ("100,000 symbols, K = 12", lambda: categorical_chain(100_000, 12, 50, stickiness=0.5, random_state=0)),
]


def ours(chain: Any) -> tuple[Callable[[], Any], Callable[[Any], float]]:
    """A fit with subchain, and its log likelihood."""
    if hasattr(chain, "means"):
        family, emission = "gaussian", Gaussian.from_parameters(chain.means, chain.covariances)
    else:
        family, emission = "categorical", Categorical.from_parameters(chain.probabilities)
    start = HMM.from_parameters(chain.initial, chain.transition, emission)
    inference = EM(max_iter=ITERATIONS, tolerance=0.0)

    def fit() -> HMM:
        return HMM(len(chain.initial), family, inference=inference, init=start, n_jobs=1, progress=False).fit(
            chain.observations
        )

    return fit, lambda model: float(model.score(chain.observations))


def theirs(chain: Any) -> tuple[Callable[[], Any], Callable[[Any], float]]:
    """The same with hmmlearn, without the priors that it has by default."""
    from hmmlearn import hmm

    values, lengths = np.asarray(chain.observations.values), np.diff(chain.observations.offsets)
    values = values.reshape(len(values), -1)
    kind = hmm.GaussianHMM if hasattr(chain, "means") else hmm.CategoricalHMM
    flat = {"covariance_type": "full", "covars_prior": 0.0, "covars_weight": 0.0} if kind is hmm.GaussianHMM else {}

    def fit() -> Any:
        model = kind(
            len(chain.initial), n_iter=ITERATIONS, tol=-np.inf, init_params="", implementation="scaling", **flat
        )
        model.startprob_, model.transmat_ = chain.initial, chain.transition
        if hasattr(chain, "means"):
            model.means_, model.covars_ = chain.means, chain.covariances
        else:
            model.emissionprob_ = chain.probabilities
        return model.fit(values, lengths)

    return fit, lambda model: float(model.score(values, lengths))


def seconds(fit: Callable[[], Any], repeats: int) -> float:
    """Best processor time of a call, after one that does not count."""
    fit()
    times = []
    for _ in range(repeats):
        began = time.process_time()
        fit()
        times.append(time.process_time() - began)
    return min(times)


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="benchmarks.whole_fits", description="Whole fits beside hmmlearn.")
    parser.add_argument("--repeats", type=int, default=5, help="calls per figure; the best counts (5)")
    repeats = parser.parse_args(arguments).repeats
    table = Table(title=f"{ITERATIONS} iterations of EM, one thread, milliseconds", title_justify="left")
    for head in ("data", "subchain", "hmmlearn", "times", "log likelihoods differ by"):
        table.add_column(head, justify="left" if head == "data" else "right")
    for title, draw in CASES:
        chain = draw()
        (our_fit, our_score), (their_fit, their_score) = ours(chain), theirs(chain)
        with threadpool_limits(1):
            ms, other = (1e3 * seconds(fit, repeats) for fit in (our_fit, their_fit))
        found, expected = our_score(our_fit()), their_score(their_fit())
        table.add_row(
            title, f"{ms:.1f}", f"{other:.1f}", f"{other / ms:.1f}", f"{abs(found / expected - 1.0):.0e} (relative)"
        )
    wide_console().print(table)


if __name__ == "__main__":
    main()
