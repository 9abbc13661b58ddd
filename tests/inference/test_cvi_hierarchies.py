"""Collapsed inference of hierarchies against its slow version, pass by pass from the same local posteriors."""

from __future__ import annotations

from typing import Any

import naive_bounds
import naive_collapsed
import naive_cvi
import naive_hdp
import numpy as np
import pytest
from numpy.typing import NDArray

from subchain import CVI, HDP, HMM, Categorical
from subchain.core import hyperparameters
from subchain.data import Sequences
from subchain.emissions.categorical import DirichletTable
from subchain.structures.chain.collapsed.ledger import LOOK, ChainLedger

Array = NDArray[np.float64]

pytestmark = pytest.mark.filterwarnings("ignore")

N_SYMBOLS, STATES = 4, 5
LENGTHS = [7, 1, 9, 4, 2, 6, 12]
SETTINGS: list[dict[str, Any]] = [{}, {"order": "batch"}, {"cluster_size": 2}, {"exclude": False}]
HIERARCHIES: list[dict[str, Any]] = [{}, {"concentration": 3.0, "top_concentration": 0.4, "stickiness": 2.0}]


def symbols() -> list[list[int]]:
    rng = np.random.default_rng(3)
    states = [np.cumsum(rng.random(length) < 0.4) % 3 for length in LENGTHS]
    noise = [rng.integers(-1, N_SYMBOLS, length) for length in LENGTHS]
    return [np.where(rng.random(len(z)) < 0.7, z, w).tolist() for z, w in zip(states, noise, strict=True)]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ChainLedger, naive_collapsed.Marginals]]:
    """Ledgers of fits, and the marginals that these began with."""
    kept: list[tuple[ChainLedger, naive_collapsed.Marginals]] = []
    draw = ChainLedger.draw

    def remember(ledger: ChainLedger, kind: str, seed: int) -> None:
        draw(ledger, kind, seed)
        kept.append((ledger, marginals_of(ledger)))

    monkeypatch.setattr(ChainLedger, "draw", remember)
    return kept


def marginals_of(ledger: ChainLedger) -> naive_collapsed.Marginals:
    """One chain a sequence; those that are visited together have one table of moves, which the first is given."""
    shares, clusters, found = ledger.shares, ledger.clusters, []
    given = {0}
    for piece, (first, length) in enumerate(zip(clusters.starts.tolist(), clusters.lengths.tolist(), strict=True)):
        row = int(clusters.share_of[piece])
        pairs = np.zeros((0, STATES, STATES)) if row in given else shares.pairs[row : row + 1].copy()
        given.add(row)
        found.append([naive_collapsed.Chain(shares.table(first, first + length).T.copy(), pairs)])
    return found


def first_top(hierarchy: dict[str, Any]) -> naive_hdp.Top:
    chain: Any = HDP(**hierarchy, construction="collapsed").prior(STATES, flat=False)
    own, nothing = chain.hierarchy, np.zeros(STATES)
    numbers = own.concentration, own.top_concentration, own.stickiness
    return naive_hdp.Top(chain.u, chain.v, list(range(STATES)), nothing, np.zeros((STATES, STATES)), *numbers)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "any family"])
@pytest.mark.parametrize("hierarchy", HIERARCHIES, ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_passes_under_a_prior_that_moves(
    begun: Any, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], hierarchy: dict[str, Any], compiled: bool
) -> None:
    if not compiled:
        monkeypatch.setattr(DirichletTable, "counts", lambda prior, sums, values: None)
    data, n_passes = symbols(), LOOK + 2
    model = HMM(
        STATES, Categorical(0.5, n_categories=N_SYMBOLS), HDP(**hierarchy, merges=False, splits=False),
        CVI(cluster="sequence", max_iter=n_passes, tolerance=0.0, **settings), init="posteriors", random_state=1,
    )  # fmt: skip
    model.fit(Sequences(np.concatenate([np.array(one) for one in data]), np.cumsum([0, *LENGTHS])))

    (ledger, q), top = begun[0], first_top(hierarchy)
    flat = np.ones((STATES, STATES))
    problem = naive_collapsed.Problem(data, flat[0], flat, np.full((N_SYMBOLS, STATES), 0.5))
    for iteration in range(1, n_passes + 1):
        q = naive_cvi.cvi_sequence_pass(q, naive_hdp.under(top, problem), **settings)
        counts = naive_cvi.expected_counts(q, problem)
        if iteration % LOOK == 1:
            top = naive_hdp.looked_at(top, counts, problem)
        top = naive_hdp.renewed(top, counts)
    of_symbols = float(naive_collapsed.log_polya(counts.emission.T, problem.beta.T).sum())
    objective = naive_hdp.log_worth(top, counts) + of_symbols + naive_bounds.entropy(q)

    chain: Any = ledger.current_prior.chain
    for found, expected in (
        (ledger.statistics.initial, counts.initial),
        (ledger.statistics.pairs, counts.rows),
        (chain.weights(), naive_hdp.weights(top)),
        (chain.u, top.u),
        (chain.v, top.v),
        (chain.pair_surplus, top.moves),
    ):
        assert found == pytest.approx(expected, abs=1e-9)
    assert model.trace_.objective[-1] == pytest.approx(objective, abs=1e-8)


@pytest.mark.parametrize("concentration", ["learned", "learned per symbol"])
@pytest.mark.parametrize("allowed", [None, {0: [0, 1], 1: [1, 2, 3], 2: [4]}], ids=["all legal", "few legal"])
@pytest.mark.parametrize(
    "settings", [{}, {"cluster": "subchain", "length": 3}, {"cluster": "state"}, {"order": "batch"}], ids=str
)
def test_compiled_visits_follow_a_prior_that_is_learned_as_those_of_any_family_do(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], allowed: Any, concentration: str
) -> None:
    monkeypatch.setattr(hyperparameters, "LATE", 2)
    monkeypatch.setattr(hyperparameters, "EARLY", 2)
    data = symbols()
    values = Sequences(np.concatenate([np.array(one) for one in data]), np.cumsum([0, *LENGTHS]))

    def fit() -> HMM:
        prior = HDP("learned", "learned", merges=False, splits=False)
        inference = CVI(max_iter=9, tolerance=0.0, **settings)
        emission = Categorical(concentration, n_categories=N_SYMBOLS)
        model = HMM(STATES, emission, prior, inference, init="posteriors", random_state=1)
        return model.fit(values, allowed=allowed)

    compiled = fit()
    monkeypatch.setattr(DirichletTable, "counts", lambda prior, sums, values: None)  # as for other families
    plain = fit()
    assert compiled.prior_.chain.hierarchy.concentration != 1.0
    for part in ("statistics_", "prior_"):
        one, other = getattr(compiled, part).arrays(), getattr(plain, part).arrays()
        for key, array in one.items():
            assert array == pytest.approx(other[key], rel=1e-6, abs=1e-7), key
