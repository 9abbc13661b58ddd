"""Variational inference over single states, against the slow version and against inference over whole sequences."""

import signal

import naive
import naive_mean_field
import numpy as np
import pytest
from examples import FAMILIES, example
from hypothesis import given, settings
from hypothesis import strategies as st

from subchain import HMM, VI, Categorical, Dirichlet, memory_estimate
from subchain.data import Evidence, Sequences
from subchain.engines import CpuEngine, Part
from subchain.engines.statistics import HMMStatistics
from subchain.errors import ImpossibleSequenceError, InputError
from subchain.inference.batch import mean_field
from subchain.transitions import left_right

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")


def states(iterations=3, **settings):
    return VI(cluster="state", max_iter=iterations, tolerance=0.0, **settings)


def sequences(iterations=3):
    return VI(max_iter=iterations, tolerance=0.0)


def words(seed=0, lengths=(9, 1, 0, 14, 6), n_symbols=5):
    rng = np.random.default_rng(seed)
    z = np.cumsum(rng.random(sum(lengths)) < 0.3) % 3
    values = np.where(rng.random(len(z)) < 0.7, z % n_symbols, rng.integers(0, n_symbols, len(z)))
    return Sequences(values, np.concatenate(([0], np.cumsum(lengths))))


def marginals_of(model):
    """Marginals (N, K) that a run has kept."""
    return model.training_marginals_.entries.reshape(-1, model.n_states_)


def log_tables(posterior, data, evidence):
    """Log likelihoods (N, K) with evidence, log weights of first states and of moves."""
    surrogate = posterior.expected_log()
    logs = surrogate.emission.log_likelihood(data.values).T
    if evidence is not None:
        logs = logs + evidence.log_weights(np.arange(len(logs)), data.values).T
    return logs, naive.logs(surrogate.initial), naive.logs(surrogate.transition)


def slow_iteration(posterior, data, evidence, weights, marginals, piece):
    """Marginals, statistics and the bound without the parameters, sequence by sequence."""
    logs, first, moves = log_tables(posterior, data, evidence)
    emission = posterior.expected_log().emission
    total, marginals = HMMStatistics.zeros(len(first), emission.zeros()), marginals.copy()
    for i in range(data.n_sequences):
        part = slice(*data.offsets[i : i + 2])
        if part.start == part.stop:
            continue
        marginals[part] = naive_mean_field.sweep(logs[part], first, moves, marginals[part], piece)
        total.chain.initial += weights[i] * marginals[part][0]
        total.chain.pairs += weights[i] * naive_mean_field.pairs(marginals[part])
        emission.accumulate(data.values[part], np.ascontiguousarray(weights[i] * marginals[part].T), total.emission)
        total.log_normalizer += weights[i] * naive_mean_field.bound(logs[part], first, moves, marginals[part])
    return marginals, total


@pytest.mark.parametrize("piece", [1, 3, None])
@pytest.mark.parametrize("given", ["nothing", "weights", "legal states", "soft evidence"])
@pytest.mark.parametrize("family", ["categorical", "gaussian"])
def test_sweep_by_sweep_a_run_is_that_of_the_slow_version(family, given, piece, monkeypatch):
    specification, data = example(family, "missing" if family == "categorical" else "ragged")
    data = data[: min(data.n_sequences, 4)]
    rng, n = np.random.default_rng(0), data.n_observations
    if piece is not None:
        monkeypatch.setattr(mean_field, "BLOCK_VALUES", 3 * piece)
    weights = rng.integers(0, 3, data.n_sequences) + 0.5 if given == "weights" else np.ones(data.n_sequences)
    legal = rng.random((n, 3)) < 0.6
    legal[np.arange(n), rng.integers(0, 3, n)] = True
    known = {
        "legal states": {"allowed": legal}, "soft evidence": {"evidence": rng.normal(size=(n, 3))},
    }.get(given, {})  # fmt: skip
    evidence = Evidence.build(data, 3, **known) if known else None

    def fit(iterations):
        model = HMM(3, specification, inference=states(iterations), random_state=1, n_jobs=1)
        return model.fit(data, sample_weight=weights, **known)

    before = fit(1)
    marginals = marginals_of(before)
    for iterations in (2, 3, 4):
        after, posterior = fit(iterations), before.posterior_
        marginals, total = slow_iteration(posterior, data, evidence, weights, marginals, piece)
        assert np.allclose(marginals_of(after), marginals, rtol=1e-9, atol=1e-10)
        assert np.allclose(after.statistics_.pairs, total.pairs, rtol=1e-9, atol=1e-10)
        assert np.allclose(after.statistics_.initial, total.initial, rtol=1e-9, atol=1e-10)
        for name, array in total.emission.arrays().items():
            assert np.allclose(after.statistics_.emission.arrays()[name], array, rtol=1e-9, atol=1e-9), name
        expected = total.log_normalizer - posterior.kl(before.prior_)
        assert after.trace_.objective[-1] == pytest.approx(expected, rel=1e-10)
        before = after


def test_a_run_begins_with_the_beliefs_of_whole_sequences_under_its_start():
    data = words()
    start = HMM(3, Categorical(n_categories=5), inference=sequences(), random_state=0).fit(data)
    after = HMM(3, Categorical(n_categories=5), inference=states(1), init=start).fit(data)
    posterior = after.prior_.update(start.expected_statistics(data))
    marginals = np.empty((data.n_observations, 3))
    CpuEngine(1).smooth(posterior.expected_log().surrogate(), Part(data), lambda block: block.write(marginals))
    marginals, _ = slow_iteration(posterior, data, None, np.ones(data.n_sequences), marginals, None)
    assert np.allclose(marginals_of(after), marginals, rtol=1e-9, atol=1e-10)


# ---- the bound -------------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**16), n_states=st.integers(1, 6), concentration=st.sampled_from([1e-4, 0.1, 1.0, 5.0]),
    family=st.sampled_from(["categorical", "gaussian", "diagonal_gaussian"]), given_first=st.booleans(),
)  # fmt: skip
def test_the_bound_never_falls(seed, n_states, concentration, family, given_first):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 30, 4) + np.array([1, 0, 0, 0])
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    emission = {"categorical": Categorical(0.3, n_categories=4)}.get(family, family)
    values = rng.integers(-1, 4, offsets[-1]) if family == "categorical" else rng.normal(size=(offsets[-1], 2)) ** 3
    initial = rng.dirichlet(np.ones(n_states)) if given_first else "learned"
    transition = Dirichlet(concentration, initial=initial)
    model = HMM(n_states, emission, transition, states(12), init="exponential", random_state=seed, n_jobs=1)
    objective = np.array(model.fit(Sequences(values, offsets)).trace_.objective)
    assert np.isfinite(objective).all()
    assert np.diff(objective).min() >= -1e-9 * np.abs(objective).max()


@pytest.mark.parametrize("family", FAMILIES)
def test_at_the_same_parameters_the_bound_lies_below_that_of_whole_sequences(family):
    specification, data = example(family, "missing")
    before = HMM(3, specification, inference=states(3), random_state=0, n_jobs=1).fit(data)
    after = HMM(3, specification, inference=states(4), random_state=0, n_jobs=1).fit(data)
    posterior = before.posterior_
    exact, _ = CpuEngine(1).scores(posterior.expected_log().surrogate(), Part(data))
    assert after.trace_.objective[-1] < exact.sum() - posterior.kl(before.prior_)


@pytest.mark.parametrize("family", FAMILIES)
def test_where_all_rows_are_equal_states_are_independent_and_nothing_is_lost(family):
    specification, data = example(family, "ragged")
    start = HMM(3, specification, inference=sequences(2), random_state=0).fit(data)
    start.point_.chain.transition[:] = [0.5, 0.3, 0.2]
    fits = [
        HMM(3, specification, Dirichlet(frozen=True), inference, init=start).fit(data)
        for inference in (states(4), sequences(4))
    ]
    assert np.allclose(fits[0].trace_.objective, fits[1].trace_.objective, rtol=1e-11)
    for name, array in fits[0].point_.arrays().items():
        assert np.allclose(array, fits[1].point_.arrays()[name], rtol=1e-8, atol=1e-10), name


def test_one_state_is_certain():
    data = words()
    fits = [
        HMM(1, Categorical(n_categories=5), inference=inference, random_state=0).fit(data)
        for inference in (states(), sequences())
    ]
    assert np.allclose(fits[0].trace_.objective, fits[1].trace_.objective, rtol=1e-12)
    assert (marginals_of(fits[0]) == 1.0).all()


def test_moves_whose_weight_is_too_small_for_a_double_are_not_impossible():
    data = words(lengths=(40, 40))
    model = HMM(8, Categorical(n_categories=5), Dirichlet(1e-5), states(30), random_state=0).fit(data)
    assert (model.posterior_.expected_log().transition == 0.0).any()
    assert np.isfinite(model.trace_.objective).all()
    assert model.statistics_.pairs.sum() == pytest.approx(78.0)


# ---- cuts, threads, interruptions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 5, 100])
def test_blocks_cover_all_positions_and_those_of_a_turn_are_never_neighbours_in_a_sequence(length):
    offsets = np.array([0, 0, 3, 4, 4, 16, 29, 30])
    edges, is_odd = mean_field.cut(offsets, length)
    assert edges[[0, -1]].tolist() == [0, 30]
    assert (np.diff(edges) > 0).all()
    inside = ~np.isin(edges[1:-1], offsets)
    assert (is_odd[1:] != is_odd[:-1])[inside].all()


@pytest.mark.parametrize("given", [{}, {"sample_weight": [2.0, 1.0, 3.0, 0.5]}])
def test_the_number_of_threads_changes_no_bit(given, monkeypatch):
    monkeypatch.setattr(mean_field, "BLOCK_VALUES", 3 * 11)
    data = words(lengths=(130, 2, 57, 40))
    one, more = (
        HMM(3, Categorical(n_categories=5), inference=states(4), random_state=0, n_jobs=n).fit(data, **given)
        for n in (1, 3)
    )
    assert one.trace_.objective == more.trace_.objective
    assert np.array_equal(one.training_marginals_.entries, more.training_marginals_.entries)
    assert np.array_equal(one.statistics_.pairs, more.statistics_.pairs)


def test_a_weight_of_two_is_two_copies():
    data = words()
    start = HMM(3, Categorical(n_categories=5), inference=sequences(2), random_state=0).fit(data)
    model = HMM(3, Categorical(n_categories=5), inference=states(4), init=start)
    weighed = model.fit(data, sample_weight=[2.0, 1.0, 1.0, 1.0, 1.0]).trace_.objective
    copied = model.fit(data[[0, 0, 1, 2, 3, 4]]).trace_.objective
    assert np.allclose(weighed, copied, rtol=1e-11)


def test_an_interruption_waits_for_the_end_of_the_sweeps_and_the_run_can_go_on(monkeypatch, tmp_path):
    data = words()

    def fit(**settings):
        return HMM(3, Categorical(n_categories=5), inference=states(8), random_state=0, n_jobs=1).fit(data, **settings)

    count, original = 0, mean_field.sweep

    def interrupted(*arguments):
        nonlocal count
        count += 1
        if count == 4:
            signal.raise_signal(signal.SIGINT)
        original(*arguments)

    monkeypatch.setattr(mean_field, "sweep", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        cut_short = fit(checkpoint=tmp_path / "c")
    monkeypatch.undo()
    assert len(cut_short.trace_.objective) == 4
    whole, resumed = fit(), fit(checkpoint=tmp_path / "c", resume=True)
    assert resumed.trace_.objective == whole.trace_.objective
    assert np.array_equal(resumed.training_marginals_.entries, whole.training_marginals_.entries)


# ---- what a user meets -----------------------------------------------------------------------------------------------


def test_the_training_data_are_decoded_with_the_beliefs_of_the_run():
    data = words()
    model = HMM(3, Categorical(n_categories=5), inference=states(), random_state=0).fit(data)
    assert np.array_equal(np.concatenate(model.predict_proba(data)), marginals_of(model))
    assert HMM(3, Categorical(n_categories=5), inference=sequences()).fit(data).training_marginals_ is None


def test_known_states_are_believed_and_forbidden_ones_are_not():
    data = words()
    known = np.where(np.arange(30) % 3 == 0, 1, -1)
    model = HMM(3, Categorical(n_categories=5), inference=states(6), random_state=0).fit(data, states=known)
    assert (marginals_of(model)[known == 1] == [0.0, 1.0, 0.0]).all()


def test_a_first_state_that_cannot_be_is_not_believed():
    data = words()
    model = HMM(3, Categorical(n_categories=5), Dirichlet(initial=[0.5, 0.0, 0.5]), states(6), random_state=0).fit(data)
    firsts = data.offsets[:-1][data.lengths > 0]
    assert (marginals_of(model)[firsts, 1] == 0.0).all()
    assert np.isfinite(model.trace_.objective).all()


def test_a_sequence_that_cannot_be_is_refused_with_its_place():
    emission = Categorical.from_parameters([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    start = HMM.from_parameters([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], emission)
    model = HMM(2, Categorical(n_categories=3, frozen=True), inference=states(), init=start)
    with pytest.raises(ImpossibleSequenceError, match="1"):
        model.fit([np.array([0, 1, 0]), np.array([0, 0, 2])])


def test_what_is_kept_is_estimated():
    x = [np.zeros(20, dtype=int)] * 100
    assert memory_estimate(HMM(10, "categorical", inference=states()), x).kept == 8 * 2000 * 10
    assert memory_estimate(HMM(10, "categorical", inference=VI()), x).kept == 0


def test_impossible_moves_are_refused():
    fixed = np.full((3, 3), np.nan)
    fixed[0, 2] = 0.0
    for transition in (Dirichlet(mask=left_right(3)), Dirichlet(fixed=fixed)):
        with pytest.raises(InputError, match="cluster='sequence'"):
            HMM(3, Categorical(n_categories=5), transition, states()).fit(words())


def test_fixed_moves_that_are_possible_keep_their_probability():
    fixed = np.full((3, 3), np.nan)
    fixed[0, 2] = 0.25
    model = HMM(3, Categorical(n_categories=5), Dirichlet(fixed=fixed), states(8), random_state=0).fit(words())
    assert model.transition_[0, 2] == 0.25
    assert np.diff(model.trace_.objective).min() >= 0.0


def test_an_unknown_cluster_is_refused():
    with pytest.raises(InputError, match="unknown cluster 'states'.*Did you mean 'state'"):
        HMM(2, "categorical", inference=VI(cluster="states")).fit(words())
