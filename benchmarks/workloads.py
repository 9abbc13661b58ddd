"""What `side_by_side` measures: pieces of work that any version of the package can do through its public interface.

A workload is prepared once in a process (data, and a first measurement that compiles and is thrown away) and then
measured as often as it is asked for. A measurement of a fit is a difference: a long run less a short one, divided by
the iterations (updates, sweeps) between them. So everything that is done once in a fit drops out, and nothing but
`HMM(...).fit` has to be known of the package.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import collapsed, long_chain
from benchmarks.cases import CASES, Problem, draw


class Clock(NamedTuple):
    """Seconds, by the wall and of this process's processor time."""

    wall: float
    processor: float

    @classmethod
    def now(cls) -> Clock:
        return cls(time.perf_counter(), time.process_time())

    def since(self, began: Clock) -> Clock:
        return Clock(self.wall - began.wall, self.processor - began.processor)


NOTHING = Clock(0.0, 0.0)


class Timing(NamedTuple):
    """One measurement: what `long` takes beyond `short` is done `count` times."""

    short: Clock
    long: Clock
    count: float = 1.0


@dataclasses.dataclass(frozen=True)
class Setup:
    """What the command line says.

    Attributes
    ----------
    folder : where data are that all processes share
    quick : whether runs are to be short
    n_jobs : threads
    length : positions of the long chain
    """

    folder: Path
    quick: bool
    n_jobs: int
    length: int


#: A measurement that can be repeated.
Measure = Callable[[], Timing]


@dataclasses.dataclass(frozen=True)
class Workload:
    """One line of the table.

    Attributes
    ----------
    group : what cases are asked for by on the command line
    title : what is measured
    unit : "s", "ms" or "µs", and of what: "ms/iteration"
    prepare : makes the measurement, in the process that will make it
    share : draws data that both versions are to have, in one of the processes; None if every process draws its own
    most_rounds : how often it is measured at most, for what takes long
    is_quick : whether a quick look includes it
    """

    group: str
    title: str
    unit: str
    prepare: Callable[[Setup], Measure]
    share: Callable[[Setup], None] | None = None
    most_rounds: int = 100
    is_quick: bool = True

    @property
    def seconds(self) -> float:
        """The unit in seconds."""
        return {"s": 1.0, "ms": 1e-3, "µs": 1e-6}[self.unit.split("/")[0]]


# ---- fits ------------------------------------------------------------------------------------------------------------


def between(fit: Callable[[int], Any], short: int, long: int, count: float = 1.0) -> Measure:
    """A measurement of what a fit with `long` iterations does beyond one with `short`, for each and each `count`-th."""

    def seconds(n: int) -> Clock:
        began = Clock.now()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit(n)
        return Clock.now().since(began)

    return lambda: Timing(seconds(short), seconds(long), (long - short) * count)


def model(n_states: int, emission: Any, inference: Any, transition: Any = None, **settings: Any) -> Any:
    """A model of the version that this process imports."""
    from subchain import HMM

    given = {"init": "random", "random_state": 0, "progress": False} | settings  # k-means would take its time
    return HMM(n_states, emission, transition, inference, **given)


# ---- throughput ------------------------------------------------------------------------------------------------------

#: By how much the cases of `throughput` are made smaller, also for a quick look, and iterations that are measured.
SMALLER = {"a": 2, "b": 2, "c": 5, "d": 3, "e": 50, "f": 1}
QUICKER = {"a": 4, "b": 4, "c": 3, "d": 3, "e": 2, "f": 1}
ITERATIONS = {"a": 10, "b": 10, "c": 5, "d": 6, "e": 2, "f": 200}


def _share_problem(name: str) -> Callable[[Setup], None]:
    def share(setup: Setup) -> None:
        divisor = SMALLER[name] * (QUICKER[name] if setup.quick else 1)
        draw(CASES[name].smaller(divisor)).save(setup.folder / f"{name}.npz")

    return share


def _throughput(name: str, inference: str) -> Callable[[Setup], Measure]:
    def prepare(setup: Setup) -> Measure:
        from benchmarks.ours import Subchain

        contender = Subchain(inference, setup.n_jobs)
        contender.prepare(Problem.load(setup.folder / f"{name}.npz"))
        return between(contender.iterate, 1, 1 + ITERATIONS[name])

    return prepare


# ---- stochastic inference --------------------------------------------------------------------------------------------


def _zipf(n_symbols: int, n: int) -> Any:
    weights = 1.0 / np.arange(1.0, n_symbols + 1.0)
    return np.random.default_rng(0).choice(n_symbols, n, p=weights / weights.sum())


def _updates(kind: str, settings: dict[str, Any], boundary: tuple[str, dict[str, Any]], updates: int) -> Any:
    """Updates of stochastic inference on a long chain of words."""

    def prepare(setup: Setup) -> Measure:
        import subchain

        x = _zipf(10_000, 300_000)
        emission, transition = subchain.Categorical(0.1, n_categories=10_000), subchain.Dirichlet(0.1)
        border = getattr(subchain, boundary[0])(**boundary[1])

        def fit(n: int) -> None:
            inference = getattr(subchain, kind)(
                boundary=border, max_updates=n, report_every=n, forgetting=0.5, **settings
            )
            model(12, emission, inference, transition, init="exponential", n_jobs=setup.n_jobs).fit(x)

        return between(fit, 10, 10 + updates // (3 if setup.quick else 1))

    return prepare


def _real_updates(boundary: tuple[str, dict[str, Any]], updates: int) -> Callable[[Setup], Measure]:
    """Updates of SVI on a long chain of vectors."""

    def prepare(setup: Setup) -> Measure:
        import subchain

        x = _vectors(np.random.default_rng(0), 100_000, 4)
        border = getattr(subchain, boundary[0])(**boundary[1])

        def fit(n: int) -> None:
            inference = subchain.SVI(length=101, batch=10, boundary=border, max_updates=n, report_every=n)
            model(10, "gaussian", inference, n_jobs=setup.n_jobs).fit(x)

        return between(fit, 10, 10 + updates // (3 if setup.quick else 1))

    return prepare


# ---- collapsed inference on sentences --------------------------------------------------------------------------------

#: Few, so that fresh memory for what is kept of each does not hide what the sweeps take.
SENTENCES = 1_500


def _sentences(kind: str, settings: dict[str, Any], iterations: int, *, with_dictionary: bool = False) -> Any:
    """Iterations of `CVI`, or sweeps of `Gibbs`, over the first sentences of `collapsed`."""

    def prepare(setup: Setup) -> Measure:
        import subchain

        everything = collapsed.sentences()
        stop = int(everything.offsets[SENTENCES // (2 if setup.quick else 1)])
        data = subchain.Sequences(everything.values[:stop], everything.offsets[everything.offsets <= stop])
        allowed = _table(collapsed.dictionary(data)) if with_dictionary else None
        emission = subchain.Categorical(0.01, n_categories=collapsed.N_SYMBOLS)

        def fit(n: int) -> None:
            model(
                collapsed.N_STATES, emission, algorithm(kind, settings, n), subchain.Dirichlet(0.1), init="states",
                n_jobs=setup.n_jobs,
            ).fit(data, allowed=allowed)  # fmt: skip

        return between(fit, 1, 1 + iterations, stop)

    return prepare


def _table(dictionary: dict[int, list[int]]) -> Any:
    """Legal states of all symbols, (W, K)."""
    table = np.zeros((collapsed.N_SYMBOLS, collapsed.N_STATES), dtype=bool)
    for symbol, states in dictionary.items():
        table[symbol, states] = True
    return table


def algorithm(kind: str, settings: dict[str, Any], iterations: int) -> Any:
    """An algorithm that does so many iterations; for `Gibbs`, so many sweeps of one chain before the one it keeps."""
    import subchain

    if kind == "Gibbs":
        return subchain.Gibbs(n_chains=1, n_samples=1, burn_in=iterations, **settings)
    return getattr(subchain, kind)(max_iter=iterations, tolerance=0.0, **settings)


# ---- single states of other families ---------------------------------------------------------------------------------

POSITIONS, QUICK_POSITIONS, FEW_STATES = 500, 200, 8


def _vectors(rng: np.random.Generator, n: int, width: int) -> Any:
    """A sticky chain over eight centres."""
    path = np.cumsum(rng.random(n) < 0.1) % FEW_STATES
    return rng.normal(size=(n, width)) + 2.0 * rng.normal(size=(FEW_STATES, width))[path]


def _observations(family: str, n: int) -> tuple[Any, Any]:
    """Data of a family, and the family itself."""
    from subchain import Bernoulli, Categorical, DiagonalGaussian, Gaussian, Poisson, Product

    rng = np.random.default_rng(0)
    reals = _vectors(rng, n, 3)
    counts = rng.poisson(np.exp(0.5 * reals[:, :2]))
    if family == "categorical":
        return (np.abs(2.0 * reals[:, 0]).astype(np.int64) % 20, Categorical(0.1, n_categories=20))
    if family == "poisson":
        return counts, Poisson()
    if family == "bernoulli":
        return (reals > 0.0).astype(np.int64), Bernoulli()
    if family == "product":
        table = np.column_stack((reals[:, :2], counts[:, 0], reals[:, 2] > 0.0))
        return table, Product(a=Gaussian(columns=[0, 1]), b=Poisson(columns=2), c=Bernoulli(columns=3))
    return reals, Gaussian() if family == "gaussian" else DiagonalGaussian()


def _positions(kind: str, settings: dict[str, Any], family: str, iterations: int) -> Callable[[Setup], Measure]:
    """Visits of single positions, or of short sequences, one after the other."""

    def prepare(setup: Setup) -> Measure:
        n = QUICK_POSITIONS if setup.quick else POSITIONS
        x, emission = _observations(family, n)
        lengths = [50] * (n // 50)

        def fit(count: int) -> None:
            model(FEW_STATES, emission, algorithm(kind, settings, count), n_jobs=setup.n_jobs).fit((x, lengths))

        return between(fit, 1, 1 + iterations, n)

    return prepare


# ---- masks -----------------------------------------------------------------------------------------------------------


def _masked(mask: str, n_states: int) -> Callable[[Setup], Measure]:
    """Iterations of EM with many states of which each reaches a few; all from the same given model."""

    def prepare(setup: Setup) -> Measure:
        import subchain

        n_symbols, length = 200, 50
        n = 2_000 if n_states <= 500 else length
        rng = np.random.default_rng(0)
        allowed = subchain.banded(n_states, 2) if mask == "banded" else subchain.left_right(n_states, 2)
        transition = allowed * (0.5 + rng.random((n_states, n_states)))
        transition /= transition.sum(axis=1, keepdims=True)
        emission = subchain.Categorical.from_parameters(rng.dirichlet(np.ones(n_symbols), n_states))
        start = subchain.HMM.from_parameters(np.full(n_states, 1.0 / n_states), transition, emission)
        x = rng.integers(n_symbols, size=n), [length] * (n // length)
        family, prior = subchain.Categorical(n_categories=n_symbols), subchain.Dirichlet(mask=allowed)

        def fit(count: int) -> None:
            inference = algorithm("EM", {}, count)
            model(n_states, family, inference, prior, init=start, n_jobs=setup.n_jobs).fit(x)

        return between(fit, 1, 2)

    return prepare


# ---- one long chain --------------------------------------------------------------------------------------------------


def _share_chain(setup: Setup) -> None:
    if not (setup.folder / "chain.npy").exists():
        long_chain.write_chains(setup.folder, setup.length // (4 if setup.quick else 1))


def _long_chain(task: str) -> Callable[[Setup], Measure]:
    def prepare(setup: Setup) -> Measure:
        def measure() -> Timing:
            began = Clock.now()
            long_chain.TASKS[task](setup.folder / "chain.npy", setup.n_jobs)
            return Timing(NOTHING, Clock.now().since(began))

        return measure

    return prepare


# ---- all of them -----------------------------------------------------------------------------------------------------

#: Tasks of `long_chain` by what is measured of them: a fit has two iterations, and all of it counts.
LONG_CHAIN = {task: task.replace("one iteration", "fit, two iterations") for task in long_chain.TASKS}
STATES = {"CVI": {"cluster": "state"}, "Gibbs": {"block": "state"}}
#: Families without compiled sweeps, and how many sweeps take long enough to be measured.
SWEEPS = {"gaussian": 5, "poisson": 7, "bernoulli": 12, "product": 3}
WORKLOADS: list[Workload] = [
    *(
        Workload(
            "throughput", f"{CASES[name].smaller(SMALLER[name]).title}, {inference}", "ms/iteration",
            _throughput(name, inference), _share_problem(name),
        )
        for name, inference in [*((name, "EM") for name in CASES), ("a", "VI"), ("c", "VI")]
    ),
    *(
        Workload(
            "stochastic", f"SCVI, guards, length {length}, W = 10,000", "µs/update",
            _updates("SCVI", {"length": length, "batch": 1000 // length}, ("Guards", {}), 3000),
        )
        for length in (10, 2)
    ),
    Workload(
        "stochastic", "SVI, buffers of 20, length 2, W = 10,000", "µs/update",
        _updates("SVI", {"length": 2, "batch": 500}, ("Buffer", {"size": 20}), 600),
    ),
    *(
        Workload("stochastic", f"SVI, D = 4, {border}", "µs/update", _real_updates((border, settings), 450))
        for border, settings in (("Stationary", {}), ("Buffer", {"size": 10}), ("GrowBuffer", {}), ("Guards", {}))
    ),
    Workload("collapsed", "CVI, sentences", "µs/position", _sentences("CVI", {"cluster": "sequence"}, 15)),
    Workload(
        "collapsed", "CVI, sentences, dictionary", "µs/position",
        _sentences("CVI", {"cluster": "sequence"}, 40, with_dictionary=True),
    ),
    Workload("collapsed", "Gibbs, words", "µs/position", _sentences("Gibbs", {}, 100)),
    Workload(
        "collapsed", "Gibbs, words, dictionary", "µs/position", _sentences("Gibbs", {}, 250, with_dictionary=True)
    ),
    Workload("collapsed", "Gibbs, sentences", "µs/position", _sentences("Gibbs", {"block": "sequence"}, 30)),
    *(
        Workload("states", f"{kind}, single states, {family}", "µs/position", _positions(kind, settings, family, n))
        for kind, settings in STATES.items()
        for family, n in SWEEPS.items()
    ),
    Workload(
        "states", "CVI, single states, categorical", "µs/position",
        _positions("CVI", STATES["CVI"], "categorical", 1000),
    ),
    Workload(
        "states", "CVI, sequences, gaussian", "µs/position",
        _positions("CVI", {"cluster": "sequence"}, "gaussian", 60),
    ),
    Workload(
        "states", "Gibbs, sequences, sampled, gaussian", "µs/position",
        _positions("Gibbs", {"block": "sequence", "parameters": "sampled"}, "gaussian", 300),
    ),
    *(
        Workload(
            "masks", f"{mask}, K = {n_states:,}, EM", "ms/iteration", _masked(mask, n_states),
            most_rounds=rounds, is_quick=n_states <= 500,
        )
        for n_states, rounds in ((500, 4), (2000, 2))
        for mask in ("banded", "left-right")
    ),
    *(
        Workload("long_chain", f"long chain: {title}", "s", _long_chain(task), _share_chain)
        for task, title in LONG_CHAIN.items()
    ),
]  # fmt: skip
