"""One fit of a word aligner: a run of the same algorithm for each stage, each started from the one before."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from subchain.core.components import clone
from subchain.data.digest import digest
from subchain.errors import InputError
from subchain.inference import CVI, EM, SCVI, VI, Algorithm, Gibbs, resolve_inference
from subchain.inference.run.fit import fit_problem
from subchain.inference.run.journey import Journey
from subchain.inference.run.loop import Known, RunState
from subchain.inference.run.problem import Problem
from subchain.inference.run.progress import Progress
from subchain.inference.run.trace import Trace
from subchain.models.alignment_checkpoints import StageFile, stage_files, stage_identities
from subchain.propagation.alignment.pair import Model, Shares
from subchain.structures.alignment.ledger import AlignmentLedger
from subchain.structures.alignment.model import AlignmentPoint, AlignmentPosterior, AlignmentStatistics
from subchain.structures.alignment.structure import Alignments
from subchain.structures.alignment.text import AlignedText
from subchain.structures.alignment.walkers import averaged_shares
from subchain.tables import JumpSums, JumpWidths
from subchain.tasks.linking import PRODUCTS

#: Stages by name, and what users call them.
STAGES = {"ibm1": "IBM model 1", "diagonal": "diagonal model", "hmm": "HMM"}
#: Iterations of each stage, if nothing else was said: collapsed inference over-commits with more.
ITERATIONS = {
    "cvi": {"ibm1": 2, "diagonal": 2, "hmm": 3},
    "em": {"ibm1": 5, "diagonal": 5, "hmm": 5},
    "vi": {"ibm1": 5, "diagonal": 5, "hmm": 5},
    "scvi": {"ibm1": 1, "diagonal": 1, "hmm": 1},
    "gibbs": {"ibm1": 20, "diagonal": 20, "hmm": 20},
}
#: Probability of NULL, if nothing else was said; the second one where directions trained apart are combined by growing.
NULL_PROBABILITY, NULL_PROBABILITY_APART = 0.2, 0.4
#: Chains of a sampler that was given by its name.
CHAINS = 2


class Stage(NamedTuple):
    """How one stage ended: the kind of the weights of its posterior, the course of the run, and why it ended."""

    kind: str
    trace: Trace
    status: str


def stage_model(stage: str, settings: dict[str, Any], together: bool) -> Model:
    """Return what kernels know of a stage; `together` is whether it trains both directions to agree."""
    is_chain, null_probability = stage == "hmm", float(settings["null_probability"])
    return Model(is_chain, null_probability, together, bool(settings["end_jumps"]), stage == "diagonal")


def agrees(given: dict[str, Any], algorithm: Algorithm) -> bool:
    """Return whether an algorithm trains both directions to agree."""
    return bool(given["agreement"]) and not isinstance(algorithm, (VI, Gibbs))


def null_probability_of(given: dict[str, Any], algorithm: Algorithm) -> float:
    """Return the probability of NULL, the default where the settings of the aligner leave it open.

    Directions that are trained apart give rare words too many links. The product of posteriors removes these, growing
    does not. The geometric means of VI give words to NULL more often than the others anyway.
    """
    if given["null_probability"] is not None:
        return float(given["null_probability"])
    is_apart = not given["agreement"] and given["symmetrize"] not in PRODUCTS and not isinstance(algorithm, VI)
    return NULL_PROBABILITY_APART if is_apart else NULL_PROBABILITY


def stage_jumps(stage: str, settings: dict[str, Any]) -> JumpWidths:
    """Return the prior over jumps, or over distances, of a stage."""
    if stage == "diagonal":
        return JumpWidths.distances()
    return JumpWidths.prior(settings["max_jump"], bool(settings["end_jumps"]))


def stage_algorithm(given: str | Algorithm, stage: str, iterations: int | None) -> Algorithm:
    """Return the algorithm of one stage with its number of iterations.

    An object's own `max_iter` and `tolerance` are taken where they are not the defaults of its class.
    """
    found: Algorithm = clone(resolve_inference(given))
    if isinstance(found, CVI) and isinstance(given, str):
        found.set_params(order="shards")  # on all threads, and not worse: docs/guides/word-alignment.md
    if found.name not in ITERATIONS:
        raise InputError(f"WordAligner: inference={found.name!r} does not align words; use {', '.join(ITERATIONS)}.")
    n = ITERATIONS[found.name][stage] if iterations is None else iterations
    if isinstance(found, Gibbs):
        settings: dict[str, Any] = {"block": "sequence"}
        if found.parameters == "auto":
            settings["parameters"] = "collapsed"
        if isinstance(given, str) or iterations is not None:
            settings |= {"n_samples": n, "burn_in": n, "n_chains": CHAINS}
        found.set_params(**settings)
    elif isinstance(found, SCVI):
        if found.max_updates is None and found.max_passes is None:
            found.set_params(max_passes=float(n))
    else:
        defaults: Any = type(found)()
        if iterations is not None or found.max_iter == defaults.max_iter:  # type: ignore[attr-defined]
            found.set_params(max_iter=n)
        if found.tolerance == defaults.tolerance:  # type: ignore[attr-defined]
            found.set_params(tolerance=0.0)
    found.check()
    return found


class StageFit:
    """One call of `WordAligner.fit`, stage after stage; what a stage found is released when the next one begins.

    Attributes
    ----------
    statistics, shares : what the last stage found; shares of sentence pairs if it kept them

    Parameters
    ----------
    data : the text
    known : posterior of an earlier aligner over the same codes, whose counts the prior has; None for none
    known_stage : its last stage; jumps are taken over by the same stage
    settings : agreement, null_probability, concentration, max_jump, end_jumps and n_jobs of the aligner
    root : where random numbers come from
    """

    def __init__(
        self,
        data: AlignedText,
        known: AlignmentPosterior | None,
        known_stage: str | None,
        settings: dict[str, Any],
        root: np.random.SeedSequence,
        progress: bool | str,
    ) -> None:
        self.data = data
        self.known = known
        self.known_stage = known_stage
        self.settings = settings
        self.root = root
        self.progress = progress
        self._prior: AlignmentPosterior
        self.statistics: AlignmentStatistics | None = None
        self.shares: Shares | None = None

    def prior(self, stage: str, algorithm: Algorithm) -> AlignmentPosterior:
        """Return the prior, flat for point estimates, with the counts of an earlier aligner."""
        concentration = 1.0 if algorithm.flat else float(self.settings["concentration"])
        jumps = stage_jumps(stage, self.settings)
        if self.known is not None and self.known_stage == stage:
            jumps = self.known.jumps
        table = self.data.prior(concentration, None if self.known is None else self.known.translation)
        return AlignmentPosterior(table, jumps)

    def files(
        self,
        stages: Sequence[str],
        algorithms: Sequence[Algorithm],
        checkpoint: str | os.PathLike[str] | None,
        resume: bool | None,
    ) -> list[StageFile]:
        """Return the checkpoints of all stages, which are checked here."""
        if checkpoint is None:
            return [StageFile(None, resume, {})] * len(stages)
        text, known = self.data.text, (self.known, self.known_stage)
        identities = stage_identities(stages, algorithms, text, self.settings, *known)
        return stage_files(checkpoint, resume, identities, self.root)

    def run(self, stage: str, algorithm: Algorithm, file: StageFile) -> Stage:
        """Run one stage and return how it ended."""
        together = agrees(self.settings, algorithm)
        model, prior = stage_model(stage, self.settings, together), self.prior(stage, algorithm)
        self._forget_jumps(prior.jumps.counts.shape)
        start = self.shares if isinstance(algorithm, CVI) else None
        structure = Alignments(self.data, model, self.settings["n_jobs"], start)
        is_exact = not together and (stage == "ibm1" or isinstance(algorithm, EM)) and self.known is None
        problem = Problem(structure, prior, exact=is_exact)
        identity = file.identity | {"start": None if file.path is None else self._digest_of_start()}
        begin = self._start(problem, algorithm)
        unit = "pairs", structure.n_observations / max(self.data.n_pairs, 1)
        with Progress(self.progress, STAGES[stage], unit) as line:
            journey = fit_problem(
                problem, algorithm, [begin], self.root,
                identity=identity, checkpoint=file.path, resume=file.resume, progress=line,
            )  # fmt: skip
        self._prior = prior
        return self._ended(journey, algorithm)

    def posterior(self) -> AlignmentPosterior:
        """Return the posterior after the last stage, with the word pairs of the known table that this text lacks."""
        assert self.statistics is not None
        found = self._prior.update(self.statistics)
        if self.known is None:
            return found
        return dataclasses.replace(found, translation=found.translation.with_pairs_of(self.known.translation))

    def _forget_jumps(self, shape: tuple[int, ...]) -> None:
        """Begin a stage without jumps if those of the stage before are of another kind: widths, or distances."""
        if self.statistics is None or self.statistics.jumps.counts.shape == shape:
            return
        nothing = JumpSums(np.zeros(shape), np.zeros(shape))
        self.statistics = dataclasses.replace(self.statistics, jumps=nothing)
        if self.shares is not None:
            self.shares = Shares(self.shares.links, np.zeros((self.data.n_pairs, *shape), dtype=np.float32))

    def _start(self, problem: Problem, algorithm: Algorithm) -> Callable[[], RunState]:
        """Return what makes the start: the statistics of the stage before, or words that are all alike."""
        seed = int(self.root.generate_state(1, np.uint32)[0])
        structure, prior = problem.structure, problem.prior
        assert isinstance(structure, Alignments)
        assert isinstance(prior, AlignmentPosterior)

        def begin() -> RunState:
            statistics, point = self.statistics, prior.predictive()
            self.statistics = None  # from here on it belongs to the run
            if statistics is None and isinstance(algorithm, CVI):
                statistics = structure.nothing(prior.jumps.counts.shape[1])
            elif statistics is None and isinstance(algorithm, SCVI):
                statistics = structure.expected(cast(AlignmentPoint, point), np.arange(structure.n_clusters))
            elif statistics is not None and not isinstance(algorithm, (CVI, SCVI)):  # these begin with counts
                point, _ = algorithm.point(prior.update(statistics), statistics, None)
                if isinstance(algorithm, EM) and not statistics.jumps.counts.any():  # a mode would exclude unseen jumps
                    point = dataclasses.replace(point, jumps=prior.jumps.predictive())
            return RunState(Known(statistics, point), seed=seed)

        return begin

    def _ended(self, journey: Journey, algorithm: Algorithm) -> Stage:
        state = journey.best
        assert state is not None
        assert isinstance(state.results.reported, AlignmentStatistics)
        self.statistics = state.results.reported
        if isinstance(algorithm, CVI):
            if isinstance(state.results, AlignmentLedger):
                self.shares = state.results.posteriors
            else:  # a finished run that was only read
                memory = state.results.memory
                self.shares = Shares(memory["shares.links"].copy(), memory["shares.jumps"].copy())
        if isinstance(algorithm, Gibbs):
            self.shares = averaged_shares(state.results.memory, algorithm.n_chains)
        kind = "mode" if isinstance(algorithm, EM) else "expected_log" if isinstance(algorithm, VI) else "predictive"
        return Stage(kind, state.trace, state.status or "max_iter")

    def _digest_of_start(self) -> str | None:
        """Return a hash of what the stage before has left; None for the first stage."""
        return digest(None if self.statistics is None else self.statistics.arrays())
