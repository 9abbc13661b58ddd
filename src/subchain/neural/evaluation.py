"""Log probabilities, most probable states and samples of text under fixed weights."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subchain.errors import InferenceError, InputError
from subchain.neural.batches import Text, of_chains, sentence_groups
from subchain.neural.chain import Carried, Stretch, log_likelihood, marginals, steps
from subchain.neural.emissions import WordTable
from subchain.neural.networks import Noise
from subchain.neural.parameters import Networks, Weights

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Entries of the tables of steps that are computed at once: on processors, and on other devices.
ENTRIES, MANY_ENTRIES = 1 << 22, 1 << 27
#: Entries of the tables of the longest sequence whose posterior marginals are computed on a processor.
MOST_POSTERIOR = 1 << 28

#: Logarithm of the largest perplexity.
MOST = 700.0


def whole_weights(networks: Networks, table: WordTable) -> Weights:
    """Return the weights of all states, without noise."""
    with torch.no_grad():
        return networks.weights(table, Noise(None, table.groups.device), networks.size)


def perplexity(log_probability: float, n_words: int) -> float:
    """Return exp of the mean negative log probability of a word; infinity where that is too large, or not a number."""
    mean = -log_probability / n_words
    return math.exp(mean) if mean < MOST else mean if math.isnan(mean) else math.inf


@torch.no_grad()
def scores(weights: Weights, text: Text) -> Array:
    """Return the log probability of each chain, (C,)."""
    found = np.zeros(len(text.chains()) - 1)
    for chosen, stretches in _stretches(weights, text, weights.entries_of_word):
        carried, total = Carried.nothing(weights, len(chosen)), torch.zeros(len(chosen), dtype=torch.float64)
        for stretch in stretches:
            logs, carried = log_likelihood(weights, stretch, carried)
            total += logs.double().cpu()
        found[chosen] = total.numpy()
    if np.isnan(found).any():
        raise _overflow("the log probability of the text")
    return found


@torch.no_grad()
def best_states(weights: Weights, text: Text) -> Index:
    """Return the most probable states of each chain, one after the other, (N,)."""
    out, edges = np.empty(len(text.words), dtype=np.int64), text.chains()
    for chosen, stretches in _stretches(weights, text, weights.size**2):
        paths = _best_paths(weights, list(stretches)).cpu().numpy()
        for chain, path in zip(chosen, paths, strict=True):
            start, stop = edges[chain], edges[chain + 1]
            out[start:stop] = path[: stop - start]
    return out


@torch.no_grad()
def posteriors(weights: Weights, text: Text) -> Array:
    """Return the posterior marginals of all states at each position, (N, K)."""
    size, n_groups = weights.size, weights.table.n_groups
    device, edges = weights.start.device, text.chains()
    most = (MOST_POSTERIOR if device.type == "cpu" else MANY_ENTRIES) // weights.entries_of_word
    longest = int(np.diff(edges).max(initial=0))
    if longest > most:
        raise InputError(
            f"posterior marginals of a sequence of {longest} words take too much memory; with these states at most "
            f"{most} words are possible. Use to_hmm(), or cut the sequence."
        )
    out = np.zeros((len(text.words), n_groups, size))
    of_words = weights.table.groups.cpu().numpy()[text.words]
    for chosen in sentence_groups(text, max(1, ENTRIES // weights.entries_of_word)):
        found = marginals(weights, of_chains(text, chosen, device)).double().cpu().numpy()
        for chain, table in zip(chosen, found, strict=True):
            here = np.arange(edges[chain], edges[chain + 1])
            out[here, of_words[here]] = table[: len(here)]
    return out.reshape(len(text.words), n_groups * size)


def _best_paths(weights: Weights, stretches: list[Stretch]) -> Tensor:
    """Return the most probable states of chains side by side, (B, T), by the Viterbi algorithm in log space."""
    n = len(stretches[0].words)
    logs = weights.start.new_zeros(n, weights.size)
    groups = torch.zeros(n, dtype=torch.int64, device=logs.device)
    choices, of_words = [], []
    for stretch in stretches:
        here = weights.table.groups[stretch.words]
        for t, table in enumerate(steps(weights, stretch, groups).unbind(1)):
            best, choice = (logs[:, :, None] + table).max(dim=1)
            known = stretch.known[:, t, None]
            logs = torch.where(known, best, logs)
            choices.append(torch.where(known, choice, torch.arange(weights.size, device=choice.device)))
        groups = here[:, -1]
        of_words.append(here)
    state = logs.argmax(dim=1)
    path = [state]
    for choice in reversed(choices[1:]):
        state = choice.gather(1, state[:, None])[:, 0]
        path.append(state)
    return torch.cat(of_words, dim=1) * weights.size + torch.stack(path[::-1], dim=1)


def _stretches(weights: Weights, text: Text, entries_of_word: int) -> Iterator[tuple[Index, Iterator[Stretch]]]:
    """Yield chains that run side by side, and their stretches one after the other.

    A stretch has as many words as keep tables with so many entries for each of them small.
    """
    device = weights.start.device
    size = max(1, (ENTRIES if device.type == "cpu" else MANY_ENTRIES) // entries_of_word)
    for chosen in sentence_groups(text, size):
        whole = of_chains(text, chosen, device)
        length = max(1, size // len(chosen))
        cuts = range(0, whole.words.shape[1], length)
        yield chosen, (whole.between(at, at + length) for at in cuts)


@torch.no_grad()
def sample(weights: Weights, n: int, end: int | None, rng: np.random.Generator) -> tuple[Index, Index]:
    """Return words and states of a text of n words; behind the word `end` comes a first state."""
    first = weights.start.flatten().exp().double().cpu().numpy()
    members = weights.table.members.cpu().numpy()
    words, states = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for position in range(n):
        if position == 0 or words[position - 1] == end:
            law = first
        else:
            law = weights.transition.rows(_one(states[position - 1], weights))[0].double().cpu().numpy()
        states[position] = _drawn(law, rng)
        law = weights.emissions.rows(_one(states[position], weights))[0].double().cpu().numpy()
        group = states[position] // weights.size
        words[position] = members[group][_drawn(law, rng)]
    return words, states


def _drawn(law: Array, rng: np.random.Generator) -> int:
    total = law.sum()
    if not 0.0 < total < np.inf:
        raise _overflow("a distribution")
    return int(rng.choice(len(law), p=law / total))


def _overflow(what: str) -> InferenceError:
    return InferenceError(
        f"the networks are not usable: {what} is not a number, because parameters are so large that they overflow. "
        "Train again with a smaller learning_rate, or go back to an earlier file."
    )


def _one(state: np.int64, weights: Weights) -> Tensor:
    return torch.tensor([int(state)], device=weights.start.device)
