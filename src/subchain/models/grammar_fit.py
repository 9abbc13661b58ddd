"""One fit of a grammar over dependency trees: an algorithm from one or several starts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from subchain.core.components import clone
from subchain.data.digest import digest
from subchain.errors import InputError
from subchain.inference import EM, Algorithm, Gibbs, resolve_inference
from subchain.inference.run.checkpoint import Journey
from subchain.inference.run.fit import fit_problem
from subchain.inference.run.loop import Known, RunState
from subchain.inference.run.problem import Problem
from subchain.inference.run.progress import Progress
from subchain.inference.run.trace import Trace
from subchain.inference.stochastic.settings import Stochastic
from subchain.models.settings import describe
from subchain.numerics.seeds import seed_sequence
from subchain.propagation.trees.passes import SCORE
from subchain.structures.trees.model import TreePoint, TreePosterior
from subchain.structures.trees.starts import start_statistics
from subchain.structures.trees.structure import DependencyTrees

#: Algorithms that fit grammars, and their iterations, passes, or draws (with as many of burn-in) if nothing was said.
ITERATIONS = {"em": 40, "vi": 40, "cvi": 40, "svi": 40, "scvi": 40, "online_em": 40, "gibbs": 200}
#: Chains of a sampler that was given by its name.
CHAINS = 2


def grammar_algorithm(given: str | Algorithm, iterations: int | None) -> Algorithm:
    """Return the algorithm with its number of iterations; an object keeps its other settings."""
    found: Algorithm = clone(resolve_inference(given))
    if found.name not in ITERATIONS:
        raise InputError(f"DMV: inference={found.name!r} fits no grammars; use {', '.join(ITERATIONS)}.")
    settings: dict[str, Any] = {}
    is_open = isinstance(given, str) or iterations is not None
    n = ITERATIONS[found.name] if iterations is None else iterations
    if isinstance(found, Gibbs):
        if found.block == "state" or found.parameters == "collapsed":
            raise InputError(f"DMV: trees are drawn with block='sequence', parameters='sampled'; not by {found!r}.")
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
class GrammarFit:
    """One call of `DMV.fit`.

    Attributes
    ----------
    structure : the sentences
    algorithm : what fits them
    concentrations : of the prior, by part
    start : the kind of start, or rules of the same tags
    n_init : number of starts
    root : where random numbers come from
    is_seeded : whether `root` was given, so that another fit may have to be refused
    """

    structure: DependencyTrees
    algorithm: Algorithm
    concentrations: dict[str, float]
    start: str | TreePoint
    n_init: int
    root: np.random.SeedSequence
    is_seeded: bool

    def prior(self) -> TreePosterior:
        """Return the prior, flat for point estimates."""
        chosen = dict.fromkeys(self.concentrations, 1.0) if self.algorithm.flat else self.concentrations
        return TreePosterior.symmetric(self.structure.n_tags, chosen)

    def run(
        self, checkpoint: str | os.PathLike[str] | None, resume: bool | None, progress: bool | str
    ) -> tuple[TreePosterior, Journey]:
        """Return the posterior of the best run, and all runs."""
        problem = Problem(self.structure, self.prior())
        seeds = seed_sequence(self.root).spawn(self.n_init)
        starts: list[Callable[[], RunState]] = [partial(self._begin, problem, seed) for seed in seeds]
        unit = "sentences", self.structure.n_observations / max(self.structure.n_clusters, 1)
        with Progress(progress, "DMV", unit) as line:
            journey = fit_problem(
                problem, self.algorithm, starts, self.root,
                identity=self._identity(), checkpoint=checkpoint, resume=resume, progress=line,
            )  # fmt: skip
        assert journey.best is not None
        assert journey.best.results.reported is not None
        return self.prior().update(journey.best.results.reported), journey

    def _begin(self, problem: Problem, seed: np.random.SeedSequence) -> RunState:
        prior, number = problem.prior, int(seed.generate_state(1, np.uint64)[0])
        if isinstance(self.start, str):
            statistics = start_statistics(self.structure, self.start, np.random.default_rng(seed))
            name = self.start
        else:
            self._check_derived(self.start)
            statistics = self.structure.statistics(self.start)  # type: ignore[assignment]
            name = "given"
        point, _ = self.algorithm.point(prior.update(statistics), statistics, None)
        return RunState(Known(statistics, point), Trace(start=name), seed=number)

    def _check_derived(self, point: TreePoint) -> None:
        """Raise an `InputError` that names a sentence which rules to begin with cannot derive."""
        logs = self.structure.run(SCORE, point.rules(), np.arange(self.structure.n_clusters)).logs
        impossible = np.flatnonzero(np.isneginf(logs))
        if len(impossible):
            raise InputError(
                f"init: this grammar cannot derive {len(impossible)} sentences, the first of them sentence "
                f"{impossible[0]}, so it says nothing about them; leave them out, or begin with a grammar that was "
                "fitted with a prior, as inference='vi' does."
            )

    def _identity(self) -> dict[str, Any]:
        """Return what must be the same for a checkpoint to be resumed."""
        tags, start = self.structure.tags, self.start
        return {
            "data": digest([tags.codes, tags.starts]),
            "n_tags": self.structure.n_tags,
            "is_hard": self.structure.is_hard,
            "inference": {name: describe(value, 0) for name, value in self.algorithm.identity().items()},
            "concentrations": self.concentrations,
            "n_init": self.n_init,
            "init": start if isinstance(start, str) else digest(start.arrays()),
            "random_state": digest(self.root.generate_state(4)) if self.is_seeded else None,
        }


def check_hard(algorithm: Algorithm) -> None:
    """Raise an `InputError` unless best trees may stand for expectations."""
    if not isinstance(algorithm, EM):
        raise InputError(f"DMV: hard=True counts the best trees, as inference='em' can; not {algorithm.name!r}.")
