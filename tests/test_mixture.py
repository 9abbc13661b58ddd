"""A mixture of documents, which has no chain at all, as a structure of its own: every algorithm works on it.

Each document has one hidden class; its words are independent given the class. All results are checked against sums over
all assignments of classes to documents.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from subchain import CVI, EM, SCVI, SVI, VI, Gibbs
from subchain.core.parts import Point, Posterior
from subchain.core.statistics import Statistics
from subchain.emissions.categorical import CategoricalSums, DirichletTable
from subchain.errors import InputError
from subchain.inference.run.fit import fit_problem
from subchain.inference.run.loop import Known, RunState
from subchain.inference.run.problem import Problem
from subchain.structures.clusters import ClusterStructure

WORDS, CLASSES = 4, 2
COUNTS = np.array([[3, 1, 0, 0], [2, 0, 1, 0], [0, 0, 2, 2], [0, 1, 1, 3], [1, 0, 0, 2]], dtype=float)


@dataclasses.dataclass
class MixturePoint(Point):
    classes: Any
    words: Any


@dataclasses.dataclass
class MixturePosterior(Posterior):
    point_type = MixturePoint
    classes: DirichletTable
    words: DirichletTable


@dataclasses.dataclass
class MixtureStatistics(Statistics):
    classes: CategoricalSums
    words: CategoricalSums


class Documents(ClusterStructure):
    """Counts of words, (documents, W)."""

    def __init__(self, counts: Any) -> None:
        self.counts = counts

    @property
    def lengths(self) -> Any:
        return self.counts.sum(axis=1).astype(int)

    def joint(self, weights: MixturePoint, documents: Any) -> Any:
        """Log weights of each class with each document, (n, K)."""
        of_classes = weights.classes.log_likelihood(np.arange(CLASSES))[0]
        of_words = weights.words.log_likelihood(np.arange(WORDS))
        return of_classes + self.counts[documents] @ of_words.T

    def counted(self, shares: Any, documents: Any, log_normalizer: float) -> MixtureStatistics:
        counts = self.counts[documents]
        sums = CategoricalSums(shares.sum(axis=0)[:, None]), CategoricalSums(counts.T @ shares)
        return MixtureStatistics(*sums, log_normalizer=log_normalizer, n_observations=float(counts.sum()))

    def expected(self, weights: MixturePoint, clusters: Any) -> MixtureStatistics:
        logs = self.joint(weights, clusters)
        totals = np.logaddexp.reduce(logs, axis=1)
        return self.counted(np.exp(logs - totals[:, None]), clusters, float(totals.sum()))

    def entropy(self, weights: MixturePoint, clusters: Any) -> float:
        logs = self.joint(weights, clusters)
        logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
        return float(-(np.exp(logs) * logs).sum())

    def draw(self, weights: MixturePoint, clusters: Any, rng: np.random.Generator) -> tuple[Any, MixtureStatistics]:
        logs = self.joint(weights, clusters)
        hidden = np.argmax(logs + rng.gumbel(size=logs.shape), axis=1)
        return hidden, self.counted(np.eye(CLASSES)[hidden], clusters, 0.0)


def problem_of(concentration: float = 0.7) -> Problem:
    shapes = (CLASSES, 1), (WORDS, CLASSES)
    prior = MixturePosterior(*(DirichletTable(np.full(shape, concentration)) for shape in shapes))
    return Problem(Documents(COUNTS), prior)


def fit(algorithm: Any, problem: Problem | None = None, n_init: int = 1, **settings: Any) -> Any:
    problem = problem or problem_of(1.5 if algorithm.flat else 0.7)
    root = np.random.SeedSequence(3)

    def start(seed: Any) -> RunState:
        shares = np.random.default_rng(seed).dirichlet(np.ones(CLASSES), len(COUNTS))
        statistics = problem.structure.counted(shares, np.arange(len(COUNTS)), 0.0)  # type: ignore[attr-defined]
        return RunState(Known(statistics, problem.prior.update(statistics).mean()), seed=seed)

    return fit_problem(problem, algorithm, [lambda i=i: start(i) for i in range(n_init)], root, **settings)


def assignments() -> Any:
    """All assignments of classes to documents, with the log joint of each under the prior."""
    problem = problem_of()
    for hidden in itertools.product(range(CLASSES), repeat=len(COUNTS)):
        one_hot = np.eye(CLASSES)[list(hidden)]
        statistics = problem.structure.counted(one_hot, np.arange(len(COUNTS)), 0.0)  # type: ignore[attr-defined]
        yield np.array(hidden), problem.prior.log_evidence(statistics)


ALGORITHMS = {
    "em": EM(max_iter=200, tolerance=1e-12),
    "vi": VI(max_iter=200, tolerance=1e-12),
    "svi": SVI(batch=2, max_updates=400, report_every=50),
    "scvi": SCVI(batch=2, max_updates=400, report_every=50),
    "online em": EM(batch=2, max_updates=400, report_every=50),
    "cvi": CVI(max_iter=60),
    "gibbs": Gibbs(block="sequence", parameters="sampled", n_samples=60, burn_in=20, n_chains=2),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_runs_restarts_resumes_and_reports(name: str, tmp_path: Any) -> None:
    algorithm = ALGORITHMS[name]
    whole = fit(algorithm, n_init=3)
    assert len(whole.summaries) == 3
    assert whole.best.results.point.not_finite() is None
    limit = next(name for name in ("max_iter", "max_updates", "n_samples") if hasattr(algorithm, name))
    settings = algorithm.get_params(deep=False)
    kind = EM if name == "online em" else type(algorithm)
    short = kind(**(settings | {limit: 20 if limit != "max_updates" else 100}))
    fit(short, checkpoint=tmp_path / "c")
    resumed, straight = fit(algorithm, checkpoint=tmp_path / "c", resume=True), fit(algorithm)
    for key, array in straight.best.results.statistics.arrays().items():
        np.testing.assert_array_equal(resumed.best.results.statistics.arrays()[key], array)


def test_em_climbs_the_likelihood_of_all_assignments() -> None:
    best = fit(ALGORITHMS["em"]).best
    objective = np.array(best.trace.objective)
    assert (np.diff(objective) >= -1e-9).all()
    structure, point, total = Documents(COUNTS), best.results.point, -np.inf
    logs = structure.joint(point, np.arange(len(COUNTS)))
    for hidden, _ in assignments():
        total = np.logaddexp(total, logs[np.arange(len(COUNTS)), hidden].sum())
    assert total + problem_of(1.5).prior.log_density(point) == pytest.approx(objective[-1], abs=1e-6)


def test_the_bounds_are_below_the_evidence_of_all_assignments() -> None:
    evidence = np.logaddexp.reduce([log_joint for _, log_joint in assignments()])
    bound = np.array(fit(ALGORITHMS["vi"], problem_of()).best.trace.objective)
    assert (np.diff(bound) >= -1e-9).all()
    assert bound[-1] < evidence < bound[-1] + 4.0
    assert fit(ALGORITHMS["cvi"], problem_of()).best.trace.objective[-1] < evidence


@pytest.mark.parametrize(("algorithm", "kind"), [(SVI, "expected_log"), (SCVI, "predictive")])
def test_an_update_blends_the_scaled_statistics_of_the_drawn_documents(algorithm: Any, kind: str) -> None:
    once = algorithm(batch=2, delay=1.0, forgetting=0.7, max_updates=1, report_every=1)
    problem, structure = problem_of(), Documents(COUNTS)
    begin = structure.counted(np.random.default_rng(0).dirichlet(np.ones(CLASSES), len(COUNTS)), slice(None), 0.0)
    units = np.random.default_rng([0, 0]).integers(len(COUNTS), size=(64, 2))[0]
    fresh = structure.expected(problem.prior.update(begin).weights(kind), units)  # type: ignore[arg-type]
    rate = 2.0**-0.7
    expected = (1.0 - rate) * begin.words.counts + rate * len(COUNTS) / 2 * fresh.words.counts
    np.testing.assert_allclose(fit(once, problem).best.results.statistics.words.counts, expected, rtol=1e-12)


def test_a_visit_takes_the_cluster_out_first() -> None:
    """One pass of CVI, written out: every document is assigned by the posterior predictive of the others."""
    problem, structure = problem_of(), Documents(COUNTS)
    shares = [fit(CVI(max_iter=1), problem).best.results.of(i) for i in range(len(COUNTS))]
    after = fit(CVI(max_iter=2), problem).best.results.statistics
    for document in range(len(COUNTS)):
        others = sum(shares[i].words.counts for i in range(len(COUNTS)) if i != document)
        classes = sum(shares[i].classes.counts for i in range(len(COUNTS)) if i != document)
        words = (others + 0.7) / (others + 0.7).sum(axis=0)
        logs = np.log((classes[:, 0] + 0.7) / (classes + 0.7).sum()) + COUNTS[document] @ np.log(words)
        new = np.exp(logs - np.logaddexp.reduce(logs))[None]
        shares[document] = structure.counted(new, np.array([document]), 0.0)
    np.testing.assert_allclose(after.words.counts, sum(share.words.counts for share in shares), rtol=1e-9)


def test_gibbs_draws_pairs_together_as_often_as_the_posterior_says() -> None:
    gibbs = Gibbs(block="sequence", parameters="sampled", n_samples=3000, burn_in=100, n_chains=2, keep_states=True)
    drawn = fit(gibbs, problem_of()).best.results.memory["samples.hidden"]
    found = (drawn[..., :, None] == drawn[..., None, :]).mean(axis=(0, 1))
    hidden, logs = zip(*assignments(), strict=True)
    weights = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    alike = np.array([h[:, None] == h[None] for h in hidden])
    np.testing.assert_allclose(found, np.tensordot(weights, alike, axes=1), atol=0.04)


def test_what_is_for_chains_alone_says_so() -> None:
    refused = {"not for Documents": VI(cluster="state"), "parameters='sampled'": Gibbs()}
    for message, algorithm in (refused | {"annealing": Gibbs("sequence", "sampled", annealing=0.1)}).items():
        with pytest.raises(InputError, match=message):
            fit(algorithm)
