"""One pass that asks whether moves happen: ragged sequences, cut chains, chains in log space, weights."""

from __future__ import annotations

import naive_hdp
import numpy as np
import pytest
from tables import Case, random_case

from subchain import HMM, VI, Categorical, Dirichlet
from subchain.data import Sequences
from subchain.datasets import load_alice
from subchain.engines import CpuEngine, Part
from subchain.errors import ConvergenceWarning, ImpossibleSequenceError, InputError
from subchain.propagation.occurrence.methods import DETERMINISTIC, METHODS, pairs

ENGINE = CpuEngine(2)


def hard_case() -> Case:
    case = random_case([20, 2, 30], 3, np.eye(3))
    case.logs[20:22] = [[-800.0, -801.0, 0.0], [0.0, 0.0, -np.inf]]
    return case


CASES = {
    "ragged": random_case([6, 0, 1, 5, 5], 3, spread=3.0),
    "cut": random_case([7, 0, 300, 5003], 3, spread=5.0),
    "many states": random_case([60] * 5 + [20], 50, spread=9.0),
    "in log space": hard_case(),
}


def chains(case: Case) -> list[tuple[np.ndarray, np.ndarray]]:
    """First marginals and conditional moves of all sequences that are not empty, in log space throughout."""
    out = []
    with np.errstate(divide="ignore"):
        for logs, initial, transition in case.chains():
            after, moves = np.zeros(logs.shape[1]), []
            for step in range(len(logs) - 1, 0, -1):
                onward = np.log(transition) + logs[step] + after
                after = np.logaddexp.reduce(onward, axis=1)
                moves.append(np.exp(onward - np.where(np.isfinite(after), after, 0.0)[:, None]))
            first = np.log(initial) + logs[0] + after
            steps = np.array(moves[::-1]).reshape(-1, *transition.shape)
            out.append((np.exp(first - np.logaddexp.reduce(first)), steps))
    return out


@pytest.mark.parametrize("name", CASES)
def test_pairs_are_those_of_the_whole_sequences(name: str) -> None:
    case = CASES[name]
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(case.lengths))
    found = ENGINE.occurrence(case.surrogate, Part(case.data, weights=weights))
    counted = weights[np.array(case.lengths) > 0]
    moves = sum(weight * pairs(*chain) for weight, chain in zip(counted, chains(case), strict=True))
    first = sum(
        -weight * np.log1p(-np.minimum(chain[0], 1.0 - 1e-12))
        for weight, chain in zip(counted, chains(case), strict=True)
    )
    np.testing.assert_allclose(found.first, first, rtol=1e-6, atol=1e-12)
    assert np.all(found.moves <= moves * (1.0 + 1e-6) + 1e-12)
    assert np.all(found.moves >= moves * (1.0 - 0.0051) - 1e-12)


@pytest.mark.parametrize("method", ["exact", "mean_field"])
@pytest.mark.parametrize("name", ["ragged", "many states"])
def test_other_methods_add_up_over_sequences(method: str, name: str) -> None:
    case = CASES[name]
    found = ENGINE.occurrence(case.surrogate, Part(case.data), method=method)
    expected = sum(DETERMINISTIC[method](*chain) for chain in chains(case))
    np.testing.assert_allclose(np.exp(-found.moves), np.exp(-expected), atol=1e-11)


def test_exact_is_the_sum_over_all_paths_of_all_sequences() -> None:
    case = CASES["ragged"]
    absent = np.prod([naive_hdp.absent(naive_hdp.chain_paths(*chain), 3) for chain in case.chains()], axis=0)
    found = ENGINE.occurrence(case.surrogate, Part(case.data), method="exact")
    np.testing.assert_allclose(found.probability, 1.0 - absent, atol=1e-12)


def test_samples_do_not_depend_on_cores() -> None:
    case = CASES["cut"]
    one, two = (
        CpuEngine(cores).occurrence(case.surrogate, Part(case.data), method="sampling", n_samples=5, seed=3)
        for cores in (1, 2)
    )
    np.testing.assert_array_equal(one.moves, two.moves)


@pytest.mark.parametrize("method", ["exact", "mean_field"])
def test_a_cut_chain_is_nearly_its_pieces_and_their_borders(method: str) -> None:
    case = CASES["cut"]
    found = ENGINE.occurrence(case.surrogate, Part(case.data), method=method)
    whole = sum(DETERMINISTIC[method](*chain) for chain in chains(case))
    assert whole[1, 1] < 110.0  # the others are beyond doubt
    np.testing.assert_allclose(found.moves[1, 1], whole[1, 1], rtol=0.01)


def test_an_unknown_method_is_named() -> None:
    case = CASES["ragged"]
    with pytest.raises(InputError, match="guess"):
        ENGINE.occurrence(case.surrogate, Part(case.data), method="guess")


def test_an_impossible_sequence_is_named() -> None:
    case = random_case([10, 7], 2)
    case.logs[13] = -np.inf
    with pytest.raises(ImpossibleSequenceError, match="sequence 1"):
        ENGINE.occurrence(case.surrogate, Part(case.data))


def test_pairs_are_nearly_exact_in_text() -> None:
    """Once states differ; chains as short as those above are another matter."""
    characters = load_alice(sequences="chain").observations.values[:10_000]
    data = Sequences(characters, np.arange(101) * 100)
    model = HMM(
        10, Categorical(1.0 / 27, n_categories=27), Dirichlet(0.3), VI(max_iter=30), init="exponential", random_state=0,
        progress=False,
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning):
        surrogate = model.fit(data).posterior_.predictive().surrogate()
    truth = ENGINE.occurrence(surrogate, Part(data), method="exact").probability
    assert truth.min() < 0.5
    errors = {
        name: np.abs(ENGINE.occurrence(surrogate, Part(data), method=name).probability - truth) for name in METHODS
    }
    assert errors["pairs"].mean() < 2e-4
    assert errors["pairs"].max() < 5e-3
    assert errors["sampling"].mean() < 0.01
    assert errors["mean_field"].mean() > 0.05
