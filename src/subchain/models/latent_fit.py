"""One fit of a grammar with latent annotations: one run, or a run after each split and each merge.

A run begins with the statistics of the one before, changed by `structures/latent/splitting.py`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import clone
from subchain.data.digest import digest
from subchain.errors import InputError, unknown_name
from subchain.inference import CVI, Algorithm
from subchain.inference.run.checkpoint import Checkpoint
from subchain.inference.run.fit import fit_problem
from subchain.inference.run.journey import Journey
from subchain.inference.run.loop import Known, RunState
from subchain.inference.run.problem import Problem
from subchain.inference.run.progress import Progress
from subchain.inference.run.trace import Trace
from subchain.models.settings import describe
from subchain.numerics.seeds import seed_sequence
from subchain.propagation.latent.trees import Forest
from subchain.structures.latent.grammar import TreebankGrammar
from subchain.structures.latent.layout import Layout, layout_of
from subchain.structures.latent.ledger import groups_of
from subchain.structures.latent.model import AnnotatedPoint, AnnotatedPosterior, AnnotatedStatistics
from subchain.structures.latent.splitting import merge_counts, merge_maps, smooth_counts, split_counts, split_sizes
from subchain.structures.latent.starts import start_statistics
from subchain.structures.latent.structure import AnnotatedTrees

Index = NDArray[np.int64]

#: Ways of training: all annotations at once, or split, merged and smoothed in turn.
DIRECT, SPLIT_MERGE = "direct", "split_merge"
TRAININGS = (DIRECT, SPLIT_MERGE)
#: Kinds of stages.
WHOLE, SPLIT, MERGE = "annotated", "split", "merged"
#: Bytes of what `CVI` keeps of the trees, from which on several are excluded together.
MOST_SHARES = 1 << 28


class Training(NamedTuple):
    """Settings of a training.

    Attributes
    ----------
    kind : one of `TRAININGS`
    n_annotations : of each symbol, at most
    noise : of splits and starts
    merged : share of the pairs that are merged after each split
    smoothing : weight of the mean over a symbol's annotations, after each merge
    concentration : of the prior
    n_init : number of starts
    """

    kind: str
    n_annotations: int
    noise: float
    merged: float
    smoothing: float
    concentration: float
    n_init: int

    @property
    def stages(self) -> list[str]:
        """The kinds of the runs, one after the other."""
        if self.kind == DIRECT:
            return [WHOLE]
        if self.kind != SPLIT_MERGE:
            raise unknown_name("training", self.kind, TRAININGS)
        n_cycles = self.n_annotations.bit_length() - 1
        return [SPLIT, MERGE] * n_cycles or [WHOLE]


class Fitted(NamedTuple):
    """What a fit found: the posterior, its layout, the runs of the last stage, and names and traces of all stages."""

    posterior: AnnotatedPosterior
    layout: Layout
    journey: Journey
    stages: list[tuple[str, Trace]]


@dataclasses.dataclass
class LatentFit:
    """One call of `LatentPCFG.fit`.

    Attributes
    ----------
    grammar, forest : the treebank
    algorithm : what runs in every stage
    chooses_groups : whether how many trees `CVI` excludes together follows from the memory that they take
    training : its settings
    n_jobs : threads
    root : where random numbers come from
    is_seeded : whether `root` was given, so that another fit may have to be refused
    """

    grammar: TreebankGrammar
    forest: Forest
    algorithm: Algorithm
    chooses_groups: bool
    training: Training
    n_jobs: int
    root: np.random.SeedSequence
    is_seeded: bool

    def run(self, checkpoint: str | os.PathLike[str] | None, resume: bool | None, progress: bool | str) -> Fitted:
        """Do all stages; every one but that of a direct training has a checkpoint of its own, path.1, path.2, …

        A stage whose start differs from that of its checkpoint, as after one that was resumed with a larger limit,
        begins again.
        """
        self._check_files(checkpoint, resume)
        stages, seeds = self.training.stages, seed_sequence(self.root).spawn(2 * self.training.n_annotations + 1)
        sizes = np.ones(self.grammar.n_symbols, dtype=np.int64)
        layout, counts = layout_of(self.grammar, sizes), self.grammar.counts.astype(np.float64)
        traces: list[tuple[str, Trace]] = []
        for number, (stage, seed) in enumerate(zip(stages, seeds, strict=False)):
            structure, begin = self._prepared(stage, layout, counts, seed)
            algorithm = self._algorithm(structure)
            path = None if checkpoint is None else _stage_path(checkpoint, stage, number)
            identity = self._identity(stage, number) | _start_identity(structure, algorithm, counts)
            goes_on = resume
            if resume and number and not Checkpoint(path, identity, self.root).is_same_fit():
                goes_on = False  # the stage before went on, or there is no file yet
            journey = self._run_stage(stage, structure, algorithm, begin, seed, identity, path, goes_on, progress)
            assert journey.best is not None
            assert isinstance(journey.best.results.reported, AnnotatedStatistics)
            layout, counts = structure.layout, journey.best.results.reported.rules.counts
            traces.append((stage, journey.best.trace))
            if journey.interrupted or journey.best.status == "time_limit":
                break
            if stage == MERGE:
                counts = smooth_counts(self.grammar, counts, layout, self.training.smoothing)
        statistics = structure.record(counts, 0.0, structure.total_weight)
        return Fitted(self.prior(layout).update(statistics), layout, journey, traces)

    def prior(self, layout: Layout) -> AnnotatedPosterior:
        """Return the prior, flat for point estimates."""
        concentration = 1.0 if self.algorithm.flat else self.training.concentration
        return AnnotatedPosterior.symmetric(layout.widths, concentration)

    def _check_files(self, checkpoint: str | os.PathLike[str] | None, resume: bool | None) -> None:
        """Raise an `InputError`, before anything is fitted, if there are checkpoints that the stages cannot use."""
        paths = stage_paths(checkpoint, self.training)
        missing = next((path for path in paths if not path.exists()), None)
        for number, (path, stage) in enumerate(zip(paths, self.training.stages, strict=False)):
            if resume and missing is not None and path.exists() and paths.index(missing) < number:
                raise InputError(
                    f"there is {path}, but not {missing}, the checkpoint of a stage before; bring that back, or begin "
                    "again with resume=False."
                )
            Checkpoint(path, self._identity(stage, number), self.root).check(resume)

    # ---- one stage ---------------------------------------------------------------------------------------------------

    def _prepared(
        self, stage: str, before: Layout, counts: NDArray[np.float64], seed: np.random.SeedSequence
    ) -> tuple[AnnotatedTrees, Callable[[np.random.SeedSequence], AnnotatedStatistics]]:
        """Return the trees with the annotations of a stage, and what makes its start."""
        grammar, noise = self.grammar, self.training.noise
        if stage == MERGE:
            old = AnnotatedTrees(self.forest, before, self.n_jobs)
            point = self._point(old, counts)
            maps = merge_maps(old, grammar, point, self.training.merged)
            after = layout_of(grammar, np.array([int(new[-1]) + 1 for new in maps]))
            merged = merge_counts(grammar, counts, before, after, maps)
            structure = AnnotatedTrees(self.forest, after, self.n_jobs)
            return structure, lambda seed: structure.record(merged, 0.0, structure.total_weight)
        if stage == SPLIT:
            after = layout_of(grammar, split_sizes(before.sizes))
            structure = AnnotatedTrees(self.forest, after, self.n_jobs)
            return structure, lambda seed: structure.record(
                split_counts(grammar, counts, before, after, noise, np.random.default_rng(seed)), 0.0,
                structure.total_weight,
            )  # fmt: skip
        sizes = np.full(grammar.n_symbols, self.training.n_annotations, dtype=np.int64)
        sizes[0] = 1
        structure = AnnotatedTrees(self.forest, layout_of(grammar, sizes), self.n_jobs)
        return structure, lambda seed: start_statistics(structure, grammar, noise, np.random.default_rng(seed))

    def _point(self, structure: AnnotatedTrees, counts: NDArray[np.float64]) -> AnnotatedPoint:
        statistics = structure.record(counts, 0.0, structure.total_weight)
        found = self.prior(structure.layout).update(statistics).weights("mode" if self.algorithm.flat else "mean")
        assert isinstance(found, AnnotatedPoint)
        return found

    def _algorithm(self, structure: AnnotatedTrees) -> Algorithm:
        """Return the algorithm of a stage; `CVI` excludes so many trees together that shares fit into memory."""
        found: Algorithm = clone(self.algorithm)
        if self.chooses_groups and isinstance(found, CVI):
            found.set_params(cluster_size=group_size(structure.forest, structure.layout))
        return found

    def _run_stage(
        self, stage: str, structure: AnnotatedTrees, algorithm: Algorithm,
        begin: Callable[[np.random.SeedSequence], AnnotatedStatistics], seed: np.random.SeedSequence,
        identity: dict[str, Any], path: Path | None, resume: bool | None, progress: bool | str,
    ) -> Journey:  # fmt: skip
        problem = Problem(structure, self.prior(structure.layout))
        starts: list[Callable[[], RunState]] = [
            partial(_begin, problem, algorithm, begin, stage, start)
            for start in seed_sequence(seed).spawn(self.training.n_init)
        ]
        unit = "trees", structure.n_observations / max(structure.n_clusters, 1)
        with Progress(progress, "LatentPCFG", unit) as line:
            return fit_problem(
                problem, algorithm, starts, self.root,
                identity=identity, checkpoint=path, resume=resume, progress=line,
            )  # fmt: skip

    def _identity(self, stage: str, number: int) -> dict[str, Any]:
        """Return what must be the same for the checkpoint of a stage to be of use, whatever the stages before found."""
        settings = self.algorithm.identity()
        if self.chooses_groups:
            settings.pop("cluster_size", None)
        return {
            "data": digest([*self.forest, self.grammar.rules, *self.grammar.words]),
            "training": dict(self.training._asdict()),
            "stage": [number, stage],
            "inference": {name: describe(value, 0) for name, value in settings.items()},
            "random_state": digest(self.root.generate_state(4)) if self.is_seeded else None,
        }


def _start_identity(structure: AnnotatedTrees, algorithm: Algorithm, counts: NDArray[np.float64]) -> dict[str, Any]:
    """Return what the stages before decide, and must be the same for a run to go on from the checkpoint of a stage."""
    return {"start": digest([counts, structure.layout.sizes]), "cluster_size": getattr(algorithm, "cluster_size", None)}


def _begin(
    problem: Problem, algorithm: Algorithm, begin: Callable[[np.random.SeedSequence], AnnotatedStatistics],
    stage: str, seed: np.random.SeedSequence,
) -> RunState:  # fmt: skip
    statistics = begin(seed)
    point, _ = algorithm.point(problem.prior.update(statistics), statistics, None)
    number = int(seed.generate_state(1, np.uint64)[0])
    return RunState(Known(statistics, point), Trace(start=stage), seed=number)


def group_size(forest: Forest, layout: Layout) -> int:
    """Return how many trees `CVI` excludes together if nothing was said, so that shares fit into memory."""
    size = 1
    while size < len(forest.starts) - 1 and share_bytes(forest, layout, size) > MOST_SHARES:
        size *= 2
    return size


def share_bytes(forest: Forest, layout: Layout, size: int) -> int:
    """Return the bytes of the shares when so many trees are excluded together."""
    return 4 * int(groups_of(forest, layout, size).places[-1])


def stage_paths(checkpoint: str | os.PathLike[str] | None, training: Training) -> list[Path]:
    """Return the checkpoints of all stages; none without a checkpoint."""
    if checkpoint is None:
        return []
    return [_stage_path(checkpoint, stage, number) for number, stage in enumerate(training.stages)]


def _stage_path(checkpoint: str | os.PathLike[str], stage: str, number: int) -> Path:
    return Path(os.fspath(checkpoint) + ("" if stage == WHOLE else f".{number + 1}"))
