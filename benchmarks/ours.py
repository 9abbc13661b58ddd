"""subchain as a contender."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.cases import Problem
from benchmarks.contenders import Contender, Course

#: Floating types of messages.
PRECISIONS = ("double", "single")
#: Observations of a large minibatch.
LARGE = 20_000
#: Share of the data that is enough to have all the code used that the whole will use.
PRACTICE = 0.05


def start_model(problem: Problem) -> Any:
    """The model that the run starts from."""
    from subchain import HMM, Categorical, Gaussian

    if problem.family == "categorical":
        emission: Any = Categorical.from_parameters(problem.emission["probabilities"])
    else:
        emission = Gaussian.from_parameters(problem.emission["means"], problem.emission["covariances"])
    return HMM.from_parameters(problem.initial, problem.transition, emission)


class Subchain(Contender):
    """EM, VI or another algorithm through `HMM.fit`, from a model with known parameters, in either precision."""

    package = "subchain"

    def __init__(self, inference: str, n_jobs: int, precision: str = "double") -> None:
        self.inference = inference
        self.n_jobs = n_jobs
        self.precision = precision
        self.label = "" if precision == "double" else f"in {precision} precision"

    def load(self, problem: Problem) -> None:
        """Compiled code is read from Numba's cache when it is first used."""
        self.prepare(problem.part(PRACTICE))
        self.iterate(2)

    def prepare(self, problem: Problem) -> None:
        from subchain import Categorical

        self._start = start_model(problem)
        self._x: Any = problem.values if problem.n_sequences == 1 else (problem.values, problem.lengths)
        self._n_states, self._n_observations = problem.n_states, problem.n_observations
        # The start knows all symbols, also those that do not occur in this part of the data.
        is_categorical = problem.family == "categorical"
        self._emission: Any = (
            Categorical(n_categories=problem.emission["probabilities"].shape[1]) if is_categorical else "gaussian"
        )

    def iterate(self, n_iterations: int) -> Course:
        from subchain import HMM

        engine: Any = "auto"
        if self.precision != "double":
            from subchain import Cpu

            engine = Cpu(precision=self.precision)
        model = HMM(
            n_states=self._n_states,
            emission=self._emission,
            inference=_algorithm(self.inference, n_iterations, self._n_observations),
            init=self._start,
            n_jobs=self.n_jobs,
            engine=engine,
            progress=False,
        )
        trace = model.fit(self._x).trace_
        # An iteration that starts at a given model has no objective; any other nan is a failure.
        first, *others = trace.objective
        return Course([0.0, *trace.seconds], [None if math.isnan(first) else first, *others])


class Task(Contender):
    """A use of a model whose parameters are known, by the name of its method; an iteration is a call."""

    package = "subchain"

    def __init__(self, method: str, n_jobs: int, **settings: Any) -> None:
        self.method, self.n_jobs, self.settings = method, n_jobs, settings

    def load(self, problem: Problem) -> None:
        """Compiled code is read from Numba's cache when it is first used."""
        self.prepare(problem)
        self.iterate(1)

    def prepare(self, problem: Problem) -> None:
        self._model = start_model(problem)
        self._model.n_jobs = self.n_jobs
        self._x: Any = problem.values if problem.n_sequences == 1 else (problem.values, problem.lengths)

    def iterate(self, n_iterations: int) -> Course:
        course = Course()
        course.begin()
        for _ in range(n_iterations):
            getattr(self._model, self.method)(self._x, **self.settings)
            course.note(math.nan)
        return course


def _algorithm(name: str, n_iterations: int, n_observations: int) -> Any:
    """So many iterations of an algorithm; of a stochastic one, as many updates as see so many times the data."""
    from subchain import CVI, EM, SCVI, VI, Gibbs, Guards

    passes: dict[str, Any] = {"max_iter": n_iterations, "tolerance": 0.0}
    draws: dict[str, Any] = {"n_samples": 1, "burn_in": n_iterations - 1}
    return {
        "EM": lambda: EM(**passes),
        "VI": lambda: VI(**passes),
        "CVI": lambda: CVI(order="shards", search=False, **passes),
        "SCVI": lambda: SCVI(
            length=10,
            batch=LARGE // 10,
            boundary=Guards(),
            search=False,
            max_updates=n_iterations * n_observations // LARGE,
        ),
        "Gibbs": lambda: Gibbs(block="sequence", parameters="sampled", n_chains=1, **draws),
        "Gibbs, 16 chains": lambda: Gibbs(block="state", n_chains=16, **draws),
    }[name]()
