"""One fit of a grammar over hidden trees: an algorithm from one or several starts."""

from __future__ import annotations

import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from subchain.core.components import clone
from subchain.core.parts import Posterior
from subchain.core.statistics import Statistics
from subchain.data.digest import digest
from subchain.errors import InputError
from subchain.inference import EM, Algorithm, Gibbs, Hastings, resolve_inference
from subchain.inference.run.fit import fit_problem
from subchain.inference.run.journey import Journey
from subchain.inference.run.loop import Known, RunState
from subchain.inference.run.problem import Problem
from subchain.inference.run.progress import Progress
from subchain.inference.run.trace import Trace
from subchain.inference.sampling.sampler import Sampler
from subchain.inference.stochastic.settings import Stochastic
from subchain.models.settings import describe
from subchain.numerics.seeds import seed_sequence
from subchain.structures.clusters import ClusterStructure

#: Algorithms that fit grammars, and their iterations, passes, or draws (with as many of burn-in) if nothing was said.
ITERATIONS = {"em": 40, "vi": 40, "cvi": 40, "svi": 40, "scvi": 40, "online_em": 40, "gibbs": 200, "hastings": 200}
#: Chains of a sampler that was given by its name.
CHAINS = 2


def grammar_algorithm(given: str | Algorithm, iterations: int | None, model: str = "DMV") -> Algorithm:
    """Return the algorithm with its number of iterations; an object keeps its other settings."""
    found: Algorithm = clone(resolve_inference(given))
    if found.name not in ITERATIONS:
        raise InputError(f"{model}: inference={found.name!r} fits no grammars; use {', '.join(ITERATIONS)}.")
    settings: dict[str, Any] = {}
    is_open = isinstance(given, str) or iterations is not None
    n = ITERATIONS[found.name] if iterations is None else iterations
    if isinstance(found, Sampler):
        if isinstance(found, Gibbs) and not isinstance(found, Hastings):
            if found.block == "state" or found.parameters == "collapsed":
                raise InputError(
                    f"{model}: trees are drawn with block='sequence', parameters='sampled'; not by {found!r}."
                )
            settings = {"block": "sequence", "parameters": "sampled"}
        if is_open:
            settings |= {"n_samples": n, "burn_in": n}
        if isinstance(given, str):
            settings["n_chains"] = CHAINS
    elif isinstance(found, Stochastic):
        settings = {"max_passes": float(n), "max_updates": None} if is_open else {}
    elif is_open:
        settings = {"max_iter": n} | ({"tolerance": 0.0} if isinstance(given, str) else {})
    found.set_params(**settings)
    found.check()
    return found


@dataclasses.dataclass
class GrammarFit(ABC):
    """One call of `fit` of a grammar; subclasses say what the prior and the starts are.

    Attributes
    ----------
    structure : the sentences
    algorithm : what fits them
    n_init : number of starts
    root : where random numbers come from
    is_seeded : whether `root` was given, so that another fit may have to be refused
    """

    #: What progress is shown of.
    name: ClassVar[str]
    structure: ClusterStructure
    algorithm: Algorithm
    n_init: int
    root: np.random.SeedSequence
    is_seeded: bool

    @abstractmethod
    def prior(self) -> Posterior:
        """Return the prior, flat for point estimates."""

    @abstractmethod
    def begin(self, rng: np.random.Generator) -> tuple[Statistics, str]:
        """Return statistics to begin with, and the name of the start."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return what must be the same for a checkpoint to be resumed, besides algorithm and seed."""

    def run(
        self, checkpoint: str | os.PathLike[str] | None, resume: bool | None, progress: bool | str
    ) -> tuple[Any, Journey]:
        """Return the posterior of the best run, and all runs."""
        problem = Problem(self.structure, self.prior())
        seeds = seed_sequence(self.root).spawn(self.n_init)
        starts: list[Callable[[], RunState]] = [partial(self._begin, problem, seed) for seed in seeds]
        unit = "sentences", self.structure.n_observations / max(self.structure.n_clusters, 1)
        with Progress(progress, self.name, unit) as line:
            journey = fit_problem(
                problem, self.algorithm, starts, self.root,
                identity=self._identity(), checkpoint=checkpoint, resume=resume, progress=line,
            )  # fmt: skip
        assert journey.best is not None
        assert journey.best.results.reported is not None
        return problem.prior.update(journey.best.results.reported), journey

    def _begin(self, problem: Problem, seed: np.random.SeedSequence) -> RunState:
        number = int(seed.generate_state(1, np.uint64)[0])
        statistics, name = self.begin(np.random.default_rng(seed))
        point, _ = self.algorithm.point(problem.prior.update(statistics), statistics, None)
        return RunState(Known(statistics, point), Trace(start=name), seed=number)

    def _identity(self) -> dict[str, Any]:
        return self.identity() | {
            "inference": {name: describe(value, 0) for name, value in self.algorithm.identity().items()},
            "n_init": self.n_init,
            "random_state": digest(self.root.generate_state(4)) if self.is_seeded else None,
        }


def check_hard(algorithm: Algorithm, model: str = "DMV") -> None:
    """Raise an `InputError` unless best trees may stand for expectations."""
    if not isinstance(algorithm, EM):
        raise InputError(f"{model}: hard=True counts the best trees, as inference='em' can; not {algorithm.name!r}.")
