"""Speed of collapsed inference on sentences, and on vectors of other families.

    python -m benchmarks.collapsed cvi gibbs families

cvi       iterations of collapsed variational inference beside those of variational inference, in turns, on one thread
gibbs     draws of states a second by collapsed Gibbs sampling, one chain on one thread
families  both for other emissions than symbols: positions a second, of the visits alone and of whole iterations

The sentences are made up: 50,000 of about 22 words each, W = 40,000 by Zipf's law, K = 45. The dictionary leaves 63 %
of the words one state, and 1.7 on average. Every measurement has a process of its own; compilation is left out.
`sweeps` is the sampler alone, `iterations` what a fit takes, with the log joint of every sweep; the best of several
counts. The vectors are made up as well: 100 sequences of 200 each, K = 10.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.tables import wide_console

N_STATES, N_SYMBOLS, N_SENTENCES, MEAN_LENGTH = 45, 40_000, 50_000, 22
#: Share of the words that may have several states, and how many more than two these are on average.
AMBIGUOUS, MORE = 0.37, 0.9
#: States and positions of data of other families.
N_CLUSTERS, N_VECTORS = 10, 20_000


def sentences() -> Any:
    """Words by Zipf's law in sentences of random length."""
    from subchain import Sequences

    rng = np.random.default_rng(0)
    lengths = np.maximum(rng.poisson(MEAN_LENGTH, N_SENTENCES), 1)
    weights = 1.0 / np.arange(1.0, N_SYMBOLS + 1.0)
    words = rng.choice(N_SYMBOLS, lengths.sum(), p=weights / weights.sum()).astype(np.int32)
    return Sequences(words, np.concatenate(([0], np.cumsum(lengths))))


def dictionary(data: Any) -> dict[int, list[int]]:
    """Legal states of every word: words at random, until those with several states are their share of the text."""
    rng = np.random.default_rng(1)
    counts = np.bincount(data.values, minlength=N_SYMBOLS)
    order = rng.permutation(N_SYMBOLS)
    ambiguous = np.zeros(N_SYMBOLS, dtype=bool)
    ambiguous[order] = np.cumsum(counts[order]) <= AMBIGUOUS * counts.sum()
    sizes = np.where(ambiguous, 2 + rng.poisson(MORE, N_SYMBOLS), 1)
    return {symbol: sorted(rng.choice(N_STATES, size, replace=False).tolist()) for symbol, size in enumerate(sizes)}


def cvi(*, with_dictionary: bool = False, n_jobs: int = 1, rounds: int = 3, **settings: Any) -> dict[str, Any]:
    """Observations a second of both, and how much longer an iteration of the collapsed one takes.

    Both run in turns, eleven iterations each; the mean of the last ten counts, and of the rounds the best.
    """
    from subchain import CVI, HMM, VI, Categorical, Dirichlet

    data = sentences()
    allowed = dictionary(data) if with_dictionary else None
    seconds: dict[str, list[float]] = {"vi": [], "cvi": []}
    for _ in range(rounds):
        for name, algorithm in (
            ("vi", VI(max_iter=11, tolerance=0.0)),
            ("cvi", CVI(max_iter=11, tolerance=0.0, cluster="sequence", **settings)),
        ):
            model = HMM(
                N_STATES, Categorical(0.01, n_categories=N_SYMBOLS), Dirichlet(0.1), algorithm, init="states",
                random_state=0, n_jobs=n_jobs, progress=False,
            )  # fmt: skip
            seconds[name].append(float(np.mean(np.diff(model.fit(data, allowed=allowed).trace_.seconds))))
    rates = {name: data.n_observations / min(times) for name, times in seconds.items()}
    return rates | {"ratio": 1e6 * min(seconds["cvi"]) / min(seconds["vi"])}


def gibbs(
    *, with_dictionary: bool = False, annealing: float | None = None, n_sweeps: int = 12, **settings: Any
) -> dict[str, Any]:
    """Draws a second."""
    from subchain import HMM, Categorical, Dirichlet, Gibbs
    from subchain.structures.chain.sampling.walkers import Walker

    data = sentences()
    allowed = dictionary(data) if with_dictionary else None
    sampler = Gibbs(n_chains=1, n_samples=1, burn_in=n_sweeps, annealing=annealing, **settings)
    model = HMM(
        N_STATES, Categorical(0.01, n_categories=N_SYMBOLS), Dirichlet(0.1), sampler, init="states", random_state=0,
        n_jobs=1, progress=False,
    )  # fmt: skip
    times: list[float] = []
    _time_method(Walker, "sweeps", times)
    trace = model.fit(data, allowed=allowed).trace_
    whole = np.diff(trace.seconds[1:-1]).min()
    return {"sweeps": data.n_observations / min(times[1:]), "iterations": data.n_observations / whole}


def vectors(family: str) -> tuple[Any, Any]:
    """A family with data that it describes: 100 sequences that stay in each of ten states for five positions."""
    from subchain import Bernoulli, Categorical, DiagonalGaussian, Gaussian, Poisson, Product, Sequences

    rng, n_states, n, length = np.random.default_rng(0), N_CLUSTERS, N_VECTORS, N_VECTORS // 100
    states = np.cumsum(rng.random(n) < 0.2) % n_states

    def reals(width: int) -> Any:
        return 2.0 * rng.normal(size=(n_states, width))[states] + rng.normal(size=(n, width))

    emission, values = {
        "gaussian 2": lambda: (Gaussian(), reals(2)),
        "gaussian 4": lambda: (Gaussian(), reals(4)),
        "diagonal 4": lambda: (DiagonalGaussian(), reals(4)),
        "poisson": lambda: (Poisson(), rng.poisson(rng.gamma(2.0, 3.0, n_states)[states])),
        "bernoulli 8": lambda: (Bernoulli(), (rng.random((n, 8)) < rng.random((n_states, 8))[states]).astype(np.int64)),
        "product": lambda: (
            Product(a=Gaussian(columns=[0, 1]), b=Categorical(n_categories=20, columns=2)),
            np.column_stack((reals(2), 2 * states + rng.integers(0, 2, n))),
        ),
    }[family]()
    return emission, Sequences(values, np.arange(0, n + 1, length))


def family(*, name: str, algorithm: str, n_passes: int = 12, **settings: Any) -> dict[str, Any]:
    """Positions a second of the visits alone, and of what a fit takes, without the first pass, which may compile."""
    from subchain import CVI, HMM, Dirichlet, Gibbs
    from subchain.inference.collapsed.visits import Visits
    from subchain.structures.chain.sampling.walkers import Walker

    emission, data = vectors(name)
    times: list[float] = []
    if algorithm == "gibbs":
        inference: Any = Gibbs(n_chains=1, n_samples=1, burn_in=n_passes, **settings)
        _time_method(Walker, "sweeps", times)
    else:
        inference = CVI(max_iter=n_passes, tolerance=0.0, **settings)
        _time_method(Visits, "visit_all", times)
    model = HMM(
        N_CLUSTERS, emission, Dirichlet(0.5), inference, init="states", random_state=0, n_jobs=1, progress=False
    )
    whole = np.diff(model.fit(data).trace_.seconds[1:-1]).min()
    return {"visits": data.n_observations / min(times[1:]), "iterations": data.n_observations / whole}


def _time_method(base: type, name: str, times: list[float]) -> None:
    """Write down how long each call of a method takes, in every subclass that has its own."""
    for kind in (base, *_subclasses(base)):
        if name in vars(kind):
            setattr(kind, name, _timed(vars(kind)[name], times))


def _subclasses(base: type) -> list[type]:
    return [found for kind in base.__subclasses__() for found in (kind, *_subclasses(kind))]


def _timed(method: Any, times: list[float]) -> Any:
    def timed(*arguments: Any) -> Any:
        began = time.perf_counter()
        result = method(*arguments)
        times.append(time.perf_counter() - began)
        return result

    return timed


CASES: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "cvi": [
        ("CVI, sequences", "cvi", {}),
        ("CVI, sequences, dictionary", "cvi", {"with_dictionary": True}),
        ("CVI, sequences in shards", "cvi", {"order": "shards"}),
        ("CVI, sequences in shards, two threads", "cvi", {"order": "shards", "n_jobs": 2}),
        ("CVI, sequences in shards, dictionary", "cvi", {"with_dictionary": True, "order": "shards"}),
        ("CVI, clusters of 64 sequences", "cvi", {"cluster_size": 64}),
        ("CVI, clusters of 64 sequences, two threads", "cvi", {"cluster_size": 64, "n_jobs": 2}),
    ],
    "gibbs": [
        ("Gibbs, states", "gibbs", {}),
        ("Gibbs, states, annealed", "gibbs", {"annealing": 0.5}),
        ("Gibbs, states, dictionary", "gibbs", {"with_dictionary": True, "n_sweeps": 30}),
        ("Gibbs, states, dictionary, annealed", "gibbs", {"with_dictionary": True, "annealing": 0.5, "n_sweeps": 30}),
        ("Gibbs, sequences", "gibbs", {"block": "sequence", "n_sweeps": 6}),
        ("Gibbs, sequences, drawn parameters", "gibbs", {"block": "sequence", "parameters": "sampled", "n_sweeps": 6}),
    ],
    "families": [
        (f"{name}: {label}", "family", {"name": name} | settings)
        for name in ("gaussian 2", "gaussian 4", "diagonal 4", "poisson", "bernoulli 8", "product")
        for label, settings in (
            ("Gibbs, states", {"algorithm": "gibbs", "block": "state"}),
            ("Gibbs, sequences", {"algorithm": "gibbs", "block": "sequence"}),
            ("CVI, states", {"algorithm": "cvi", "cluster": "state"}),
            ("CVI, subchains of 20", {"algorithm": "cvi", "cluster": "subchain", "length": 20}),
        )
    ],
}


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="benchmarks.collapsed", description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", default=list(CASES), help=", ".join(CASES))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one is not None:
        function, settings = json.loads(options.one)
        print(json.dumps(globals()[function](**settings)))
        return
    table = Table("", "millions a second", title="collapsed inference", title_justify="left", title_style="bold")
    for case in options.cases:
        for label, function, settings in CASES[case]:
            table.add_row(label, _run(function, settings))
    wide_console().print(table)


def _run(function: str, settings: dict[str, Any]) -> str:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.collapsed", "--one", json.dumps([function, settings])]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    found = json.loads(done.stdout.splitlines()[-1])
    return ", ".join(f"{name} {value / 1e6:.2f}" for name, value in found.items())


if __name__ == "__main__":
    main()
