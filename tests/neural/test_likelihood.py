"""Likelihoods and gradients of neural models, in double precision."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="subchain.neural needs PyTorch, which is not installed")

import naive_neural as naive  # noqa: E402

from subchain.neural import LowRank, Softmax  # noqa: E402
from subchain.neural.batches import Text, of_chains, pieces  # noqa: E402
from subchain.neural.chain import Carried, Stretch, log_likelihood  # noqa: E402
from subchain.neural.emissions import WordTable  # noqa: E402
from subchain.neural.evaluation import best_states, scores, whole_weights  # noqa: E402
from subchain.neural.functions import log_normaliser, padded, picked  # noqa: E402
from subchain.neural.likelihoods import FactoredChain, chain_likelihood  # noqa: E402
from subchain.neural.networks import Noise  # noqa: E402
from subchain.neural.parameters import Networks  # noqa: E402

CPU = torch.device("cpu")
GROUPS = np.array([0, 2, 1, 0, 2, 2])
KINDS = {"softmax": Softmax(), "low rank": LowRank(3)}
PARTITIONS = {"groups": GROUPS, "one group": np.zeros(6, dtype=np.int64)}


def networks(groups: Any = GROUPS, transition: Any = None, size: int = 4, seed: int = 0) -> tuple[Networks, WordTable]:
    torch.manual_seed(seed)
    n_groups = int(groups.max()) + 1
    found = Networks(len(groups), n_groups, size, 6, transition or Softmax()).double()
    return found, WordTable.of(groups, CPU)


def random(*shape: int) -> Any:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def stretch(words: Any, resets: Any, known: Any = None) -> Stretch:
    words, resets = torch.tensor(words), torch.tensor(resets)
    return Stretch(words, resets, torch.ones_like(resets) if known is None else torch.tensor(known))


def slow(weights: Any, words: Any, resets: Any) -> float:
    with torch.no_grad():
        return float(naive.log_likelihood(weights, words, resets))


def cases() -> list[Any]:
    return [pytest.param(KINDS[kind], PARTITIONS[part], id=f"{kind}, {part}") for kind in KINDS for part in PARTITIONS]


TEXT = [0, 1, 5, 2, 3, 3, 4, 1]
RESETS = [True, False, False, True, False, False, False, False]


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_the_normaliser_is_that_of_the_whole_table_and_so_is_its_gradient(rows: int) -> None:
    torch.manual_seed(0)
    sources, targets = random(5, 3), random(7, 3)
    found = log_normaliser(sources, targets, block=rows * 7)
    torch.testing.assert_close(found, torch.logsumexp(sources @ targets.T, dim=1))
    assert torch.autograd.gradcheck(lambda u, v: log_normaliser(u, v, block=rows * 7), (sources, targets))


def test_gathers_have_the_gradients_of_indexing() -> None:
    torch.manual_seed(0)
    index = torch.tensor([2, 0, 2, 2])
    assert torch.autograd.gradcheck(lambda table: picked(table, index), (random(3, 2, 2),))
    table = WordTable.of(GROUPS, CPU)
    words = random(6, 2)
    found = padded(words, table.members, table.groups, table.ranks)
    assert torch.equal(found[2, :3], words[[1, 4, 5]])
    assert not found[1, 1:].any()
    assert torch.autograd.gradcheck(lambda w: padded(w, table.members, table.groups, table.ranks), (words,))


def test_the_chain_has_numerical_gradients() -> None:
    torch.manual_seed(0)
    start = torch.rand(2, 3, dtype=torch.float64)
    start /= start.sum(dim=1, keepdim=True)
    known = torch.tensor([[True, True, True], [True, False, False]])
    for there in (known, None):
        assert torch.autograd.gradcheck(
            lambda steps, there=there: chain_likelihood(start, steps, there)[0], (random(2, 3, 3, 3),)
        )


def test_the_factored_chain_has_numerical_gradients() -> None:
    torch.manual_seed(0)
    start = torch.full((2, 4), 0.25, dtype=torch.float64)
    left, right = (torch.rand(4, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    known = torch.tensor([[True, True, True, True], [True, True, False, False]])
    resets = torch.tensor([[True, False, True, False], [False, False, False, False]])

    def logs(left: Any, right: Any, first: Any, emissions: Any) -> Any:
        return FactoredChain.apply(start, left, right, torch.log_softmax(first, 0), emissions, resets, known)[0]

    assert torch.autograd.gradcheck(logs, (left, right, random(4), random(2, 4, 4)))


def by_log_sums(start: Any, steps: Any) -> Any:
    """Log likelihoods (B,) of steps (B, T, S, S) in double precision; autograd gives their gradients."""
    logs = start.double().log()
    for table in steps.unbind(1):
        logs = torch.logsumexp(logs[:, :, None] + table, dim=1)
    return torch.logsumexp(logs, dim=1)


EXTREMES = {"transitions": (1.0, 0.0), "emissions": (0.0, 1.0), "both": (1.0, 1.0)}


@pytest.mark.parametrize("kind", [torch.float32, torch.float64], ids=["single", "double"])
@pytest.mark.parametrize("least", [-60.0, -80.0, -100.0, -200.0, -300.0])
@pytest.mark.parametrize("which", EXTREMES)
def test_unlikely_steps_have_the_likelihood_of_sums_in_log_space(kind: Any, least: float, which: str) -> None:
    torch.manual_seed(0)
    scale = least * torch.tensor(EXTREMES[which], dtype=torch.float64)
    steps = scale[0] * torch.rand(5, 7, 3, 3, dtype=torch.float64)
    steps += scale[1] * torch.rand(5, 7, 1, 3, dtype=torch.float64)
    steps[0, 0] = torch.tensor([least, 0.0, 0.0])[:, None]
    start = torch.tensor([[1.0, 0.0, 0.0]] * 2 + [[0.25, 0.25, 0.5]] * 3, dtype=kind)
    steps = steps.to(kind).requires_grad_()
    found, _ = chain_likelihood(start, steps, None)
    ours = torch.autograd.grad(found.sum(), steps)[0]
    exact = steps.detach().double().requires_grad_()
    expected = by_log_sums(start, exact)
    theirs = torch.autograd.grad(expected.sum(), exact)[0]
    digits = 1e-5 if kind == torch.float32 else 1e-11
    torch.testing.assert_close(found.double(), expected, rtol=digits, atol=digits)
    torch.testing.assert_close(ours.double(), theirs, rtol=0.0, atol=100 * digits)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64], ids=["single", "double"])
@pytest.mark.parametrize("least", [-60.0, -80.0, -100.0, -200.0, -300.0])
@pytest.mark.parametrize("which", ["features", "emissions"])
def test_unlikely_steps_between_factors_have_the_likelihood_of_sums_in_log_space(
    kind: Any, least: float, which: str
) -> None:
    torch.manual_seed(0)
    lowest = least if which == "features" else -1.0
    lowest = max(lowest, -80.0) if kind == torch.float32 else lowest  # of what the type can hold
    left, right = ((lowest * torch.rand(3, 2, dtype=torch.float64)).exp() for _ in range(2))
    emissions = least * torch.rand(4, 6, 3, dtype=torch.float64)
    first = torch.tensor([0.0, least, least / 2], dtype=torch.float64)
    resets = torch.zeros(4, 6, dtype=torch.bool)
    resets[:, 0], resets[1, 3] = True, True
    given = [table.to(kind).requires_grad_() for table in (left, right, first, emissions)]
    start = torch.full((4, 3), 1 / 3, dtype=kind)
    found, _ = FactoredChain.apply(start, *given, resets, torch.ones_like(resets))
    ours = torch.autograd.grad(found.sum(), given)
    exact = [table.detach().double().requires_grad_() for table in given]
    moves = torch.logsumexp(exact[0].log()[:, None] + exact[1].log()[None], dim=2)
    steps = torch.where(resets[..., None, None], exact[2], moves) + exact[3][:, :, None, :]
    expected = by_log_sums(start, steps)
    theirs = torch.autograd.grad(expected.sum(), exact)
    digits = 1e-5 if kind == torch.float32 else 1e-11
    torch.testing.assert_close(found.double(), expected, rtol=digits, atol=digits)
    for one, other, table in zip(ours, theirs, exact, strict=True):
        share = table if table is exact[0] or table is exact[1] else 1.0  # of posterior sums
        torch.testing.assert_close(one.double() * share, other * share, rtol=100 * digits, atol=100 * digits)


@pytest.mark.parametrize(("transition", "groups"), cases())
@pytest.mark.parametrize("n_kept", [4, 2])
def test_the_likelihood_and_its_gradient_are_those_of_the_dense_model(
    transition: Any, groups: Any, n_kept: int
) -> None:
    model, table = networks(groups, transition)
    parameters = list(model.parameters())
    weights = model.weights(table, Noise(1, CPU), n_kept, 0.2)
    logs, _ = log_likelihood(weights, stretch([TEXT], [RESETS]), Carried.nothing(weights, 1))
    ours = torch.autograd.grad(logs.sum(), parameters)
    weights = model.weights(table, Noise(1, CPU), n_kept, 0.2)
    expected = naive.log_likelihood(weights, TEXT, RESETS)
    theirs = torch.autograd.grad(expected, parameters)
    torch.testing.assert_close(logs[0], expected)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("transition", "groups"), cases())
def test_gradients_are_numerical_ones(transition: Any, groups: Any) -> None:
    model, table = networks(groups, transition)

    def value() -> Any:
        weights = model.weights(table, Noise(3, CPU), 2, 0.1)
        return log_likelihood(weights, stretch([TEXT], [RESETS]), Carried.nothing(weights, 1))[0].sum()

    parameters = list(model.parameters())
    gradients = torch.autograd.grad(value(), parameters)
    rng = np.random.default_rng(0)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        place, step = tuple(int(rng.integers(size)) for size in parameter.shape), 1e-6
        with torch.no_grad():
            before = float(parameter[place])
            parameter[place] = before + step
            above = float(value())
            parameter[place] = before - step
            below = float(value())
            parameter[place] = before
        assert np.isclose((above - below) / (2 * step), float(gradient[place]), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("transition", "groups"), cases())
def test_probabilities_sum_to_one_over_the_states_that_are_kept(transition: Any, groups: Any) -> None:
    model, table = networks(groups, transition)
    for table_of in naive.tables(model.weights(table, Noise(1, CPU), 3)):
        torch.testing.assert_close(table_of.sum(dim=-1), torch.ones(table_of.shape[:-1], dtype=torch.float64))


def test_dropout_that_keeps_everything_is_no_dropout() -> None:
    model, table = networks()
    kept, plain = model.weights(table, Noise(5, CPU), 4), model.weights(table, Noise(None, CPU), 4)
    for one, other in zip(naive.tables(kept), naive.tables(plain), strict=True):
        assert torch.equal(one, other)


def test_dropout_chooses_states_of_every_group_anew() -> None:
    model, table = networks()
    chosen = [model.weights(table, Noise(seed, CPU), 2).kept for seed in (0, 0, 1, 2)]
    assert torch.equal(chosen[0], chosen[1])
    assert not all(torch.equal(chosen[0], other) for other in chosen[2:])
    assert all(len(set(row.tolist())) == 2 for kept in chosen for row in kept)


@pytest.mark.parametrize(("transition", "groups"), cases())
def test_carried_marginals_make_pieces_one_long_pass(transition: Any, groups: Any) -> None:
    model, table = networks(groups, transition)
    words = np.random.default_rng(0).integers(0, 6, 50)
    text = Text.of(words, np.array([0, 20, 50]), joined=True)
    weights = whole_weights(model, table)
    total, carried = 0.0, Carried.nothing(weights, 1)
    for batch in pieces(text, 1, 7, CPU):
        logs, carried = log_likelihood(weights, batch.stretch, carried)
        total += float(logs.detach().sum())
    expected = slow(weights, words, text.begins)
    assert np.isclose(total, expected, rtol=1e-12)
    assert np.isclose(scores(weights, text).sum(), expected, rtol=1e-12)


def test_what_is_carried_into_states_that_are_dropped_is_lost_without_harm() -> None:
    model, table = networks(size=2)
    weights = model.weights(table, Noise(0, CPU), 1)
    other = 1 - weights.kept[0, 0]
    marginals = torch.zeros(1, 2, dtype=torch.float64)
    marginals[0, other] = 1.0
    logs, _ = log_likelihood(weights, stretch([[0]], [[False]]), Carried(marginals, torch.tensor([0])))
    assert torch.isfinite(logs).all()


@pytest.mark.parametrize(("transition", "groups"), cases())
def test_sequences_of_any_lengths_score_as_the_slow_version(transition: Any, groups: Any) -> None:
    model, table = networks(groups, transition)
    rng = np.random.default_rng(1)
    lengths = [3, 1, 0, 8, 5]
    words, offsets = rng.integers(0, 6, sum(lengths)), np.concatenate(([0], np.cumsum(lengths)))
    weights = whole_weights(model, table)
    found = scores(weights, Text.of(words, offsets, joined=False))
    expected = [slow(weights, words[a:b], [True] + [False] * (b - a - 1)) for a, b in pairwise(offsets) if b > a]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("transition", "groups"), cases())
def test_best_states_have_the_highest_probability_of_all_paths(transition: Any, groups: Any) -> None:
    model, table = networks(groups, transition, size=2)
    weights = whole_weights(model, table)
    first, moves, emitted = naive.numpy_tables(weights)
    for words in ([0], [1, 2, 5], [3, 0, 4, 2]):
        found = best_states(weights, Text.of(np.array(words), np.array([0, len(words)]), joined=False))

        def log_of(path: Any, words: Any = words) -> float:
            chance = first[path[0]] * emitted[path[0], words[0]]
            for before, after, word in zip(path[:-1], path[1:], words[1:], strict=True):
                chance *= moves[before, after] * emitted[after, word]
            return float(chance)

        paths = np.stack(np.meshgrid(*[np.arange(len(first))] * len(words)), axis=-1).reshape(-1, len(words))
        assert np.isclose(log_of(found), max(map(log_of, paths)), rtol=1e-9)


def test_perplexity_of_a_model_made_by_hand_is_exact() -> None:
    """Two states of one word each: x after x with probability 0.8, y after y with 0.6, first states 0.3 and 0.7."""
    model, table = networks(np.array([0, 1]), size=1)
    weights = whole_weights(model, table)
    weights.start = torch.tensor([[0.3], [0.7]], dtype=torch.float64).log()
    moves = torch.tensor([[0.8, 0.2], [0.4, 0.6]], dtype=torch.float64)
    weights.transition.sources = moves.log()[:, None]
    weights.transition.targets = torch.eye(2, dtype=torch.float64)[:, None]
    weights.transition.normaliser = torch.zeros(2, 1, dtype=torch.float64)
    text = Text.of(np.array([0, 0, 1, 1, 0]), np.array([0, 3, 5]), joined=False)
    perplexity = np.exp(-scores(weights, text).sum() / 5)
    assert np.isclose(perplexity, (0.3 * 0.8 * 0.2 * 0.7 * 0.4) ** (-1 / 5), rtol=1e-12)
    joined = Text.of(text.words, np.array([0, 3, 5]), joined=True)
    assert np.isclose(np.exp(-scores(weights, joined).sum() / 5), (0.3 * 0.8 * 0.2 * 0.6 * 0.4) ** (-1 / 5), rtol=1e-12)


@pytest.mark.parametrize("n_streams", [1, 3, 50])
@pytest.mark.parametrize("joined", [False, True])
def test_pieces_hold_every_word_once_and_in_order(n_streams: int, joined: bool) -> None:
    lengths = np.array([4, 1, 7, 3, 2, 9])
    text = Text.of(np.arange(26), np.concatenate(([0], np.cumsum(lengths))), joined=joined)
    batches = pieces(text, n_streams, 5, CPU)
    streams = [
        torch.cat([b.stretch.words[i][b.stretch.known[i]] for b in batches])
        for i in range(len(batches[0].stretch.words))
    ]
    assert torch.equal(torch.cat(streams), torch.arange(26))
    assert [batch.continues for batch in batches] == [False] + [True] * (len(batches) - 1)
    resets = torch.cat(
        [torch.cat([b.stretch.words[i][b.stretch.resets[i]] for b in batches]) for i in range(len(streams))]
    )
    begins = np.flatnonzero(text.begins) if not joined else [int(stream[0]) for stream in streams]
    np.testing.assert_array_equal(resets, begins)


def test_chains_side_by_side_are_padded() -> None:
    text = Text.of(np.arange(6), np.array([0, 4, 6]), joined=False)
    found = of_chains(text, np.array([1, 0]), CPU)
    assert found.known.tolist() == [[True, True, False, False], [True] * 4]
    assert found.words[found.known].tolist() == [4, 5, 0, 1, 2, 3]
