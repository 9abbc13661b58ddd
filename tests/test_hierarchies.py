"""Models with a hierarchical prior as a user meets them: results, files, what is known, long chains, bad input."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from examples import FAMILIES, example
from sklearn.base import clone

from subchain import (
    CVI,
    EM,
    HDP,
    HMM,
    SCVI,
    SVI,
    VI,
    Buffer,
    Categorical,
    Dirichlet,
    Gibbs,
    GrowBuffer,
    Guards,
)
from subchain.core.records import build_record
from subchain.data import Sequences
from subchain.datasets import four_state, regular_grammar
from subchain.errors import InputError
from subchain.propagation.occurrence import methods as occurrence_methods
from subchain.transitions.hdp.collapsed_top import OCCURRENCE_METHODS
from subchain.transitions.hdp.hierarchy import HierarchicalChain

pytestmark = pytest.mark.filterwarnings("ignore")

ALGORITHMS: dict[str, Any] = {
    "vi": lambda: VI(max_iter=12, tolerance=0.0),
    "vi of states": lambda: VI(max_iter=12, tolerance=0.0, cluster="state"),
    "cvi": lambda: CVI(max_iter=12, tolerance=0.0),
    "svi": lambda: SVI(length=None, batch=4, max_updates=120, report_every=10),
    "scvi": lambda: SCVI(length=None, batch=4, max_updates=120, report_every=10),
}


def fit(inference: Any = "cvi", n_states: int = 6, data: Any = None, hierarchy: Any = None, **arguments: Any) -> HMM:
    settings = {name: arguments.pop(name) for name in ("init", "n_init", "n_jobs") if name in arguments}
    emission, words = example("categorical", "many")
    algorithm = ALGORITHMS[inference]() if isinstance(inference, str) else inference
    model = HMM(n_states, emission, HDP(**(hierarchy or {})), algorithm, random_state=0, **settings)
    return model.fit(words if data is None else data, **arguments)


def arrays_of(model: HMM) -> dict[str, Any]:
    return {
        f"{part}{key}": array
        for part in ("point_", "statistics_", "prior_")
        for key, array in getattr(model, part).arrays().items()
    }


def assert_same(one: HMM, other: HMM) -> None:
    first, second = arrays_of(one), arrays_of(other)
    assert first.keys() == second.keys()
    for key, array in first.items():
        assert np.array_equal(array, second[key]), key


# ---- what a run climbs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hierarchy",
    [
        {},
        {"top_concentration": 20.0, "concentration": 0.3},
        {"top_concentration": 0.2, "concentration": 8.0, "stickiness": 2.0},
        {"concentration": "learned", "top_concentration": "learned"},
        {"concentration": "learned", "top": "uniform", "stickiness": 1.0},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("family", "cluster"),
    [(family, "sequence") for family in FAMILIES] + [("categorical", "state"), ("diagonal_gaussian", "state")],
)
def test_the_bound_of_variational_inference_never_falls(family: str, hierarchy: dict[str, Any], cluster: str) -> None:
    emission, data = example(family, "ragged", seed=len(family))
    if family == "categorical":
        emission = Categorical("learned per symbol" if cluster == "state" else "learned", n_categories=5)
    inference = VI(max_iter=25, tolerance=0.0, cluster=cluster)
    model = HMM(6, emission, HDP(**hierarchy), inference, random_state=2, n_jobs=1).fit(data)
    objective = np.array(model.trace_.objective)
    assert np.diff(objective).min() >= -1e-9 * np.abs(objective).max()


@pytest.mark.parametrize("inference", [VI(max_iter=8, tolerance=0.0), SVI(length=None, batch=3, max_updates=12)])
@pytest.mark.parametrize("family", ["categorical", "gaussian"])
def test_a_uniform_parent_is_a_symmetric_dirichlet_prior_to_the_bit(inference: Any, family: str) -> None:
    emission, data = example(family, "many")
    settings = {"inference": inference, "init": "kmeans", "random_state": 1, "n_jobs": 1}
    if "search" in inference.get_params(deep=False):
        inference.set_params(search=False)
    prior = HDP(concentration=8 * 0.25, top="uniform", merges=False, splits=False)
    one = HMM(8, emission, prior, **settings).fit(data)
    other = HMM(8, emission, Dirichlet(0.25, initial_concentration=0.25), **settings).fit(data)
    for key, array in one.statistics_.arrays().items():
        assert np.array_equal(array, other.statistics_.arrays()[key]), key
    assert np.array_equal(one.transition_, other.transition_)


def test_compiled_updates_do_what_single_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from subchain.engines.cpu import updates
    from subchain.structures.chain.fused_updates import FusedUpdates

    monkeypatch.setattr(updates, "LARGE", 0)
    hierarchy = {"concentration": "learned", "top_concentration": "learned", "merges": False, "splits": False}
    data = Sequences(np.concatenate([example("categorical", "many", seed)[1].values for seed in range(3)]))
    for kind in (SVI, SCVI):
        inference = kind(length=20, batch=4, max_updates=60, report_every=20)
        compiled = fit(inference, data=data, hierarchy=hierarchy, init="exponential")
        with monkeypatch.context() as patch:
            patch.setattr(FusedUpdates, "_can_run", lambda self, batches: False)
            plain = fit(inference, data=data, hierarchy=hierarchy, init="exponential")
        assert compiled.statistics_.pairs == pytest.approx(plain.statistics_.pairs, rel=1e-7, abs=1e-7)
        assert compiled.prior_.chain.weights() == pytest.approx(plain.prior_.chain.weights(), rel=1e-6)


# ---- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", ALGORITHMS)
def test_states_come_in_the_order_of_their_use(inference: str) -> None:
    fitted = fit(inference)
    visits = fitted.statistics_.initial + fitted.statistics_.pairs.sum(axis=0)
    assert np.array_equal(np.argsort(-fitted.state_occupancy_, kind="stable"), np.arange(6))
    assert fitted.effective_states(1.0 - 1e-12) >= (visits > 1e-6).sum()
    assert fitted.state_names_ == ["0", "1", "2", "3", "4", "5"]
    chain = fitted.prior_.chain
    assert isinstance(chain, HierarchicalChain)
    rows = chain.hierarchy.concentration * chain.weights()
    assert chain.rows.concentration == pytest.approx(np.tile(rows, (6, 1)))
    assert fitted.posterior_.mean().chain.transition == pytest.approx(fitted.transition_)
    if fitted.training_marginals_ is not None:
        marginals = np.concatenate(fitted.predict_proba(example("categorical", "many")[1]))
        assert marginals.sum(axis=0) == pytest.approx(visits, rel=1e-6, abs=1e-6)


def test_states_whose_weights_were_given_keep_their_numbers() -> None:
    weights = [1.0, 2.0, 3.0, 40.0, 5.0, 6.0]
    for hierarchy in ({"top": weights}, {"top": weights, "concentration": "learned"}):
        fitted = fit("vi", hierarchy=hierarchy)
        assert fitted.prior_.chain.weights() == pytest.approx(np.array(weights) / 57.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(VI(max_iter=3, tolerance=0.0), n_states=2, hierarchy={"top": "uniform", "concentration": "learned"})


@pytest.mark.parametrize("inference", ALGORITHMS)
def test_models_in_files_keep_their_hierarchy(inference: str, tmp_path: Any) -> None:
    hierarchy = {"concentration": "learned", "top_concentration": "learned", "stickiness": 0.5}
    fitted = fit(inference, hierarchy=hierarchy)
    fitted.save(tmp_path / "model")
    loaded = HMM.load(tmp_path / "model")
    assert_same(fitted, loaded)
    assert type(loaded.prior_.chain) is type(fitted.prior_.chain)
    assert loaded.prior_.chain.hierarchy == fitted.prior_.chain.hierarchy
    assert loaded.transition.get_params() == fitted.transition.get_params()
    more = example("categorical", "one sequence", seed=5)[1]
    assert_same(fitted.partial_fit(more), loaded.partial_fit(more))


def test_a_clone_is_fitted_to_the_same_bits() -> None:
    fitted = fit()
    _, data = example("categorical", "many")
    assert_same(fitted, clone(fitted).fit(data))
    assert_same(fitted, clone(fitted).set_params(n_jobs=2).fit(data))


@pytest.mark.parametrize("inference", ["vi", "cvi", "svi"])
def test_batches_that_come_one_by_one_move_the_parent(inference: str) -> None:
    emission, data = example("categorical", "many")
    model = HMM(6, emission, HDP(), ALGORITHMS[inference](), random_state=0)
    seen = []
    for i in range(4):
        model.partial_fit(Sequences(data.values[i * 60 : (i + 1) * 60], np.arange(0, 61, 20)))
        seen.append(model.prior_.chain.weights())
    assert model.statistics_.initial.sum() == pytest.approx(12.0)
    assert model.statistics_.pairs.sum() == pytest.approx(12.0 * 19)
    assert not np.allclose(seen[0], seen[-1])
    assert np.isfinite(model.score(data))


def test_a_truncation_that_is_full_is_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*before it settled.*")
        with pytest.raises(UserWarning, match="all n_states=2 states are in use.*raise n_states"):
            fit(n_states=2, hierarchy={"concentration": 1.0, "top_concentration": 1.0})
        fit(n_states=12, inference="vi")


@pytest.mark.parametrize("inference", ["vi", "cvi"])
def test_the_best_of_several_runs_is_kept(inference: str) -> None:
    fitted = fit(inference, n_init=3, init="exponential")
    assert fitted.trace_.objective[-1] == max(run.objective for run in fitted.runs_)
    assert len(fitted.runs_) == 3


def test_a_frozen_chain_stays_that_of_the_start() -> None:
    flat = Categorical.from_parameters(np.full((3, 5), 0.2))
    start = HMM.from_parameters([0.5, 0.3, 0.2], np.full((3, 3), 1 / 3), flat)
    fitted = fit("vi", n_states=3, hierarchy={"frozen": True}, init=start)
    assert np.array_equal(fitted.transition_, start.transition_)


# ---- knowledge of states, missing values, weights --------------------------------------------------------------------


@pytest.mark.parametrize("inference", ALGORITHMS)
def test_states_that_somebody_knows_keep_their_numbers(inference: str) -> None:
    _, data = example("categorical", "many")
    rng = np.random.default_rng(0)
    known = np.where(rng.random(data.n_observations) < 0.5, 3 + (data.values == 0), -1)
    fitted = fit(inference, data=data, states=[known[i : i + 20] for i in range(0, 240, 20)])
    assert fitted.statistics_.initial.sum() == pytest.approx(12.0, rel=1e-2)  # stochastic runs estimate it
    assert fitted.emission_.probabilities[4, 0] > 0.5
    assert fitted.state_occupancy_[[3, 4]].sum() > 0.4


@pytest.mark.parametrize("inference", ALGORITHMS)
def test_symbols_that_only_some_states_emit(inference: str) -> None:
    _, data = example("categorical", "many")
    fitted = fit(inference, data=data, allowed={0: [0, 1], 1: [2]})
    ones = np.concatenate(fitted.predict(data, allowed={0: [0, 1], 1: [2]}))[data.values == 1]
    assert (ones == 2).all()


@pytest.mark.parametrize("inference", ALGORITHMS)
def test_soft_evidence_and_missing_values(inference: str) -> None:
    _, data = example("categorical", "missing")
    evidence = [np.log(np.random.default_rng(i).dirichlet(np.ones(6), int(n))) for i, n in enumerate(data.lengths)]
    for knowledge in ({}, {"evidence": evidence}):
        fitted = fit(inference, data=data, **knowledge)
        assert fitted.point_.not_finite() is None
        assert fitted.statistics_.pairs.sum() == pytest.approx((data.lengths - 1).sum(), rel=0.3)


@pytest.mark.parametrize("inference", ["vi", "vi of states", "cvi"])
def test_a_sequence_that_counts_twice_counts_as_two(inference: str) -> None:
    emission, data = example("categorical", "many")
    weights = np.ones(12)
    weights[:3] = 2.0
    doubled = Sequences(np.concatenate([data.values, data.values[:60]]), np.arange(0, 301, 20))
    start = HMM(4, emission, inference=VI(max_iter=3), random_state=0).fit(data)
    one = fit(inference, n_states=4, data=data, init=start, sample_weight=weights, hierarchy={"splits": False})
    other = fit(inference, n_states=4, data=doubled, init=start, hierarchy={"splits": False})
    if inference == "cvi":  # a sequence is left out as a whole, be it one that counts twice or one of two
        assert one.statistics_.pairs.sum() == pytest.approx(other.statistics_.pairs.sum())
    else:
        assert one.statistics_.pairs == pytest.approx(other.statistics_.pairs, rel=1e-6, abs=1e-6)
        assert one.trace_.objective[:11] == pytest.approx(other.trace_.objective[:11])  # rounding may ask for one more


# ---- one long chain, other clusters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("boundary", ["stationary", Buffer(5), GrowBuffer(), Guards()], ids=str)
@pytest.mark.parametrize("kind", [SVI, SCVI])
def test_one_long_chain(kind: Any, boundary: Any) -> None:
    chain = four_state(n_sequences=1, length=4000, random_state=0)
    inference = kind(length=50, batch=8, boundary=boundary, max_updates=150, report_every=10)
    fitted = HMM(8, "categorical", HDP(), inference, random_state=0, n_jobs=1).fit(chain.observations)
    assert fitted.point_.not_finite() is None
    assert fitted.effective_states() < 8
    assert fitted.statistics_.pairs.sum() == pytest.approx(3999, rel=0.02)


@pytest.mark.parametrize(
    "settings",
    [
        {"cluster": "subchain", "length": 7},
        {"cluster": "subchain", "length": 7, "together": 3, "left": "probabilities"},
        {"cluster": "state"},
        {"cluster": "state", "corrections": False},
        {"together": 4},
        {"order": "batch"},
        {"order": "shuffled"},
        {"exclude": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("family", ["categorical", "poisson"])
def test_collapsed_inference_over_any_clusters(settings: dict[str, Any], family: str, tmp_path: Any) -> None:
    emission, data = example(family, "many")
    if family == "poisson":  # which visits one cluster after the other
        data = Sequences(data.values[:80], np.arange(0, 81, 20))
    in_memory, in_files = (
        HMM(6, emission, HDP(), CVI(max_iter=12, tolerance=0.0, storage=folder, **settings), random_state=0).fit(data)
        for folder in (None, tmp_path)
    )
    assert_same(in_memory, in_files)
    assert in_memory.statistics_.pairs.sum() == pytest.approx(19 * data.n_sequences)
    assert in_memory.prior_.chain.hierarchy.n_updates >= 12


@pytest.mark.parametrize("inference", [CVI(max_iter=7, tolerance=0.0), SCVI(max_updates=30)], ids=["cvi", "scvi"])
def test_every_method_for_the_occurrence_of_transitions(inference: Any) -> None:
    assert OCCURRENCE_METHODS == occurrence_methods.METHODS
    found = {}
    for method in OCCURRENCE_METHODS:
        chain = fit(inference, hierarchy={"occurrence": method}).prior_.chain
        assert chain.not_finite() is None
        assert chain.occurrence_method == method
        found[method] = chain.pair_surplus
    for method in OCCURRENCE_METHODS[1:]:
        assert found[method].any()
        assert (found[method] != found["pairs"]).any()


def test_records_of_older_files_load_under_the_new_names_of_their_fields() -> None:
    chain = HDP(construction="collapsed", occurrence="exact").prior(3, flat=False)
    schema, arrays = chain.schema(), chain.arrays()
    fields = schema["fields"]
    fields["way"], arrays["way"] = fields.pop("method"), arrays.pop("method")
    hierarchy = fields["hierarchy"]["fields"]
    hierarchy["renewals"], arrays["hierarchy.renewals"] = hierarchy.pop("n_updates"), arrays.pop("hierarchy.n_updates")
    loaded = build_record(schema, arrays)
    assert loaded.schema() == chain.schema()
    assert loaded.occurrence_method == "exact"


@pytest.mark.parametrize("family", ["categorical", "gaussian", "poisson"])
@pytest.mark.parametrize("inference", ["vi", "cvi"])
def test_starts_by_context(inference: str, family: str) -> None:
    emission, data = example(family, "many")
    fitted = HMM(6, emission, HDP(), ALGORITHMS[inference](), init="context", random_state=0).fit(data)
    assert np.isfinite(fitted.trace_.objective[-1])


# ---- toys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["positive", "negative"])
@pytest.mark.parametrize("inference", [VI(max_iter=100), CVI(max_iter=100)], ids=["vi", "cvi"])
def test_four_states_are_found_to_be_four(inference: Any, kind: str, seed: int) -> None:
    chain, fresh = (four_state(kind, random_state=random_state) for random_state in (seed, 1000 + seed))
    fitted = HMM(10, Categorical(1.0), HDP(), inference, init="exponential", random_state=seed).fit(chain.observations)
    truth = HMM.from_parameters(chain.initial, chain.transition, Categorical.from_parameters(chain.probabilities))
    assert fitted.effective_states() == 4
    n = fresh.observations.n_observations
    assert (fitted.score(fresh.observations) - truth.score(fresh.observations)) / n > -0.01


@pytest.mark.parametrize("seed", [2, 5])
@pytest.mark.parametrize("inference", [VI(max_iter=100), CVI(max_iter=100)], ids=["vi", "cvi"])
def test_the_grammar_has_seven(inference: Any, seed: int) -> None:
    data = regular_grammar(random_state=seed).observations
    fitted = HMM(12, Categorical(1.0), HDP(), inference, n_init=2, init="exponential", random_state=seed).fit(data)
    assert fitted.effective_states() == 7


# ---- bad input -------------------------------------------------------------------------------------------------------


BAD: list[tuple[Any, Any, str]] = [
    *[("vi", {name: bad}, f"{name} must be a finite number, positive")
      for name in ("concentration", "top_concentration")
      for bad in (0.0, -1.0, np.nan, np.inf, "many", [1.0], True)],
    *[("vi", {"stickiness": bad}, "stickiness must be a finite number, at least 0")
      for bad in (-1.0, np.nan, "learned")],
    ("cvi", {"occurrence": "guess"}, "occurrence"),
    *[(name, {"occurrence": "exact"}, "occurrence='exact' needs an algorithm that integrates the transition rows out. "
       f"inference='{name}' does not; use inference='cvi' or 'scvi', or leave occurrence out")
      for name in ("vi", "svi")],
    ("vi", {"construction": "restaurant"}, "construction"),
    *[(name, {"construction": construction}, f"construction='{construction}' needs an algorithm that {treatment} the "
       f"transition rows.*inference='{name}' does not; use inference={better}, or set construction={other}")
      for names, construction, treatment, better, other in (
          (("vi", "svi"), "collapsed", "integrates", "'cvi' or 'scvi'", "'direct' or 'sticks'"),
          (("cvi", "scvi"), "direct", "keeps a variational posterior of", "'svi' or 'vi'", "'collapsed'"),
          (("cvi", "scvi"), "sticks", "keeps a variational posterior of", "'svi' or 'vi'", "'collapsed'"),
          (("vi", "cvi"), "drawn", "draws", "'beam'", "'"),
      ) for name in names],
    ("cvi", {"top": "uniform"}, "top= needs construction='direct'"),
    ("vi", {"concentration": "learned", "frozen": True}, "gives none"),
    ("vi", {"top_concentration": "learned", "top": "uniform"}, "drop one of them"),
    ("vi", {"top": "even"}, "top"),
    ("vi", {"top": [1.0, 2.0]}, "top must hold 6 positive numbers"),
    ("vi", {"top": np.ones((6, 6))}, "top must hold 6 positive numbers"),
    ("vi", {"top": [1, 1, 1, 1, 1, 0]}, "top must hold 6 positive numbers"),
    ("vi", {"top": [1, 1, 1, 1, 1, np.nan]}, "top must hold 6 positive numbers"),
    ("vi", {"top": {"a": 1}}, "top must"),
    ("vi", {"top": 3.0}, "top must"),
]  # fmt: skip


@pytest.mark.parametrize(("inference", "hierarchy", "message"), BAD, ids=str)
def test_bad_input_is_told_in_one_sentence(inference: str, hierarchy: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(inference, hierarchy=hierarchy)


@pytest.mark.parametrize("learned", ["concentration", "top_concentration"])
def test_what_is_frozen_cannot_be_learned(learned: str) -> None:
    start = fit("vi")
    with pytest.raises(InputError, match="contradict each other"):
        fit("vi", hierarchy={learned: "learned", "frozen": True}, init=start)


@pytest.mark.parametrize("construction", ["auto", "direct", "sticks", "collapsed"])
@pytest.mark.parametrize("inference", [EM(), EM(batch=2), Gibbs()], ids=["em", "online em", "gibbs"])
def test_algorithms_that_cannot_learn_a_hierarchy_say_so(inference: Any, construction: str) -> None:
    better = "use inference='beam' or 'cvi' or 'scvi' or 'svi' or 'vi', or use transition=Dirichlet"
    with pytest.raises(InputError, match=f"hierarchical prior needs an algorithm.*{inference.name}.*{better}"):
        fit(inference, hierarchy={"construction": construction})


@pytest.mark.parametrize("inference", ["vi", "cvi"])
def test_one_state_is_no_truncation(inference: str) -> None:
    with pytest.raises(InputError, match="must be at least 2"):
        fit(inference, n_states=1)
