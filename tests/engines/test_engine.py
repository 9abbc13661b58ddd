"""The engine against the judge: cut or whole, side by side or alone, on one core or two, the numbers are the same."""

import naive
import numpy as np
import pytest
from chains import left_right, nearly_periodic, random_rows, sticky
from hypothesis import given
from hypothesis import strategies as st
from tables import Case, random_case

from subchain.data import Evidence, Sequences
from subchain.emissions.categorical import CategoricalTable
from subchain.engines import CpuEngine, Part, Surrogate
from subchain.errors import ImpossibleSequenceError, InputError

ENGINE = CpuEngine(1)


def assert_statistics_equal_the_judge(case: Case, weights=None, tolerance: float = 1e-12) -> None:
    statistics = ENGINE.statistics(case.surrogate, Part(case.data, case.evidence, weights))
    truth = case.marginals()
    share = np.ones(len(truth)) if weights is None else weights[np.array(case.lengths) > 0]
    total = sum(w * one.log_likelihood for w, one in zip(share, truth, strict=True))
    initial = sum(w * one.smoothed[0] for w, one in zip(share, truth, strict=True))
    pairs = sum(w * one.pairs for w, one in zip(share, truth, strict=True))
    marginals = np.concatenate([w * one.smoothed for w, one in zip(share, truth, strict=True)])
    if case.missing is not None:
        marginals[case.missing] = 0.0
    assert statistics.log_normalizer == pytest.approx(total, rel=tolerance, abs=tolerance)
    np.testing.assert_allclose(statistics.initial, initial, rtol=0.0, atol=tolerance * initial.max())
    np.testing.assert_allclose(statistics.pairs, pairs, rtol=0.0, atol=tolerance * max(pairs.max(), 1.0))
    np.testing.assert_allclose(statistics.emission.marginals, marginals, rtol=0.0, atol=tolerance * share.max())

    scores, _ = ENGINE.scores(case.surrogate, case.part)
    expected = [one.log_likelihood for one in truth]
    np.testing.assert_allclose(scores[np.array(case.lengths) > 0], expected, rtol=tolerance, atol=tolerance)
    assert (scores[np.array(case.lengths) == 0] == 0.0).all()


# ---- sequences of all shapes -----------------------------------------------------------------------------------------


@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=30).filter(sum),
    n_states=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_many_sequences(lengths: list[int], n_states: int, seed: int):
    assert_statistics_equal_the_judge(random_case(lengths, n_states, seed=seed), tolerance=1e-11)


@pytest.mark.parametrize(
    ("lengths", "n_states"),
    [([1], 3), ([2], 2), ([1031], 4), ([4999], 3), ([2003, 0, 1, 3001, 5], 5), ([1500, 7, 1300], 50)],
)
def test_lengths_that_divide_by_nothing(lengths: list[int], n_states: int):
    assert_statistics_equal_the_judge(random_case(lengths, n_states))


def test_missing_observations_weigh_nothing():
    case = random_case([700, 1500, 3], 4)
    case.missing = np.flatnonzero(np.random.default_rng(1).random(len(case.logs)) < 0.3)
    assert_statistics_equal_the_judge(case)


def test_sequences_of_missing_observations_alone():
    case = random_case([5, 1400], 3)
    case.missing = np.arange(len(case.logs))
    assert_statistics_equal_the_judge(case)


def test_evidence_is_a_factor_of_the_likelihood():
    case = random_case([40, 2600, 9], 3)
    rng = np.random.default_rng(2)
    known = np.where(rng.random(len(case.logs)) < 0.1, rng.integers(0, 3, len(case.logs)), -1)
    soft = np.log(rng.random((len(case.logs), 3)))
    case.evidence = Evidence.build(case.data, 3, states=known, evidence=soft)
    assert_statistics_equal_the_judge(case)


def test_a_weight_counts_a_sequence_so_many_times():
    case = random_case([30, 2100, 0, 4], 3)
    assert_statistics_equal_the_judge(case, weights=np.array([2.0, 0.5, 7.0, 0.0]))


def test_rows_that_lose_weight():
    rng = np.random.default_rng(5)
    case = random_case([3001, 20], 4, 0.6 * random_rows(rng, 4, 4))
    assert_statistics_equal_the_judge(case)


# ---- chains that are hard to cut -------------------------------------------------------------------------------------

HARD_TO_CUT = {
    "sticky": (sticky(3, 0.999), 1.0),
    "very sticky": (sticky(4, 1.0 - 1e-7), 1.0),
    "nearly periodic": (nearly_periodic(5, 1e-3), 0.01),
    "almost periodic": (nearly_periodic(3, 1e-12), 0.01),
    "periodic": (nearly_periodic(4, 0.0), 1.0),
    "left to right": (left_right(4, 0.999), 0.01),
    "apart": (np.eye(3), 0.001),
    "nearly deterministic": (sticky(3, 0.2), 60.0),
    "silent": (sticky(3, 0.9), 0.0),
    "tiny moves": (np.array([[1.0 - 1e-200, 1e-200], [1e-200, 1.0 - 1e-200]]), 1e-3),
}


@pytest.mark.parametrize("name", HARD_TO_CUT)
def test_cut_chains_equal_the_pass_from_end_to_end(name: str):
    transition, spread = HARD_TO_CUT[name]
    assert_statistics_equal_the_judge(random_case([5003], len(transition), transition, spread))


def test_an_observation_that_revives_a_belief_of_1e_250():
    case = random_case([4001], 2, np.array([[1.0 - 1e-30, 1e-30], [1e-30, 1.0 - 1e-30]]), 0.01)
    case.logs[2000:2010, 0] -= 57.0
    case.logs[2400:2410, 1] -= 57.0
    assert_statistics_equal_the_judge(case)


# ---- what a double cannot hold ---------------------------------------------------------------------------------------


def test_likelihoods_of_1e_300_at_every_position():
    case = random_case([30, 2500], 3)
    case.logs -= 690.0
    assert_statistics_equal_the_judge(case)


def test_likelihoods_that_differ_by_1e_300_at_every_position():
    assert_statistics_equal_the_judge(random_case([30, 2500], 3, spread=690.0), tolerance=1e-11)


def test_a_sequence_whose_scaled_probability_is_zero_is_worked_out_in_logarithms():
    case = random_case([20, 3, 30], 2, np.eye(2))
    case.logs[20:23] = [[-800.0, 0.0], [0.0, -400.0], [0.0, -300.0]]
    assert_statistics_equal_the_judge(case, tolerance=1e-10)


def test_states_that_cannot_be_reached_do_not_disturb():
    case = random_case([400], 2, np.eye(2))
    case.initial = np.array([1.0, 0.0])
    case.logs[:, 0] -= 100.0
    assert_statistics_equal_the_judge(case)


@pytest.mark.parametrize("length", [12, 3000])
def test_a_state_that_comes_back_from_1e_400_as_the_better_one(length: int):
    case = random_case([length], 2, np.eye(2))
    case.logs[: length // 2, 0] -= 2400.0 / length
    case.logs[length // 2 :, 1] -= 2520.0 / length
    assert_statistics_equal_the_judge(case, tolerance=1e-9)


def test_zeros_of_the_transitions_stay_zeros():
    rng = np.random.default_rng(0)
    case = random_case([3000, 40, 50], 5, random_rows(rng, 5, 5, zeros=0.5))
    pairs = ENGINE.statistics(case.surrogate, case.part).pairs
    assert (pairs[case.transition == 0.0] == 0.0).all()
    assert_statistics_equal_the_judge(case)


@pytest.mark.parametrize("at", [0, 3, 6])
def test_an_impossible_sequence_is_named_with_its_position(at: int):
    case = random_case([10, 7, 3], 2)
    case.logs[10 + at] = -np.inf
    with pytest.raises(ImpossibleSequenceError, match=f"sequence 1 .* position {at}"):
        ENGINE.statistics(case.surrogate, case.part)


@pytest.mark.parametrize("transition", [sticky(2, 0.6), sticky(2, 1.0 - 1e-9)])
def test_an_impossible_position_within_a_long_chain(transition):
    case = random_case([100, 40_000], 2, transition)
    case.logs[100 + 33_333] = -np.inf
    totals, impossible = ENGINE.scores(case.surrogate, case.part)
    assert impossible == {1: 33_333}
    assert totals[1] == -np.inf
    assert totals[0] == pytest.approx(naive.marginals(*case.chains()[0]).log_likelihood, rel=1e-12)


def test_moves_that_are_forbidden_make_a_sequence_impossible():
    case = random_case([6], 2, np.eye(2))
    case.logs[:3, 0], case.logs[3:, 1] = -np.inf, -np.inf
    assert ENGINE.scores(case.surrogate, case.part)[1] == {0: 3}


# ---- who computes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        random_case([7, 0, 300, 20_000], 3),
        random_case([20_000], 3, nearly_periodic(3, 1e-12), 0.01),
        random_case([11] * 3000, 4),
        random_case([60] * 40, 50),
    ],
    ids=["mixed", "sweep", "sentences", "many states"],
)
def test_one_core_and_two_give_the_same_bits(case: Case):
    one, two = (CpuEngine(n).statistics(case.surrogate, case.part) for n in (1, 2))
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, two.arrays()[name], err_msg=name)


@given(st.permutations(range(6)))
def test_permuting_sequences_permutes_scores(order: list[int]):
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 5, n) for n in (3, 1, 40, 0, 1500, 7)]
    surrogate = Surrogate(
        random_rows(rng, 3), random_rows(rng, 3, 3), CategoricalTable(random_rows(rng, 3, 5).T.copy())
    )

    def scores(sequences):
        data = Sequences(np.concatenate(sequences), np.cumsum([0, *map(len, sequences)]))
        return ENGINE.scores(surrogate, Part(data))[0]

    np.testing.assert_allclose(scores([parts[i] for i in order]), scores(parts)[list(order)], rtol=1e-13)


def test_no_sequences_give_empty_statistics():
    case = random_case([0, 0], 2)
    statistics = ENGINE.statistics(case.surrogate, case.part)
    assert statistics.pairs.sum() == statistics.initial.sum() == statistics.log_normalizer == 0.0


def test_no_core_is_refused():
    with pytest.raises(InputError, match="n_jobs"):
        CpuEngine(0)


def test_weight_lost_in_one_piece_of_a_chain_and_regained_over_many_others_is_not_missed():
    logs = np.log(np.repeat([[0.55, 0.45], [0.45, 0.55]], [5000, 20000], axis=0))
    case = random_case([len(logs)], 2, np.eye(2))
    case.initial, case.logs = np.array([0.5, 0.5]), logs
    expected = np.logaddexp.reduce(logs.sum(axis=0) + np.log(0.5))
    scores, _ = ENGINE.scores(case.surrogate, case.part)
    assert scores[0] == pytest.approx(expected, rel=1e-12)
