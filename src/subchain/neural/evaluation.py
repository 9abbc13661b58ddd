"""Log probabilities, most probable states and samples of text under fixed weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subchain.neural.batches import Text, of_chains, sentence_groups
from subchain.neural.chain import Carried, Stretch, log_likelihood, steps
from subchain.neural.emissions import WordTable
from subchain.neural.networks import Noise
from subchain.neural.parameters import Networks, Weights

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Entries of the tables of steps that are computed at once: on processors, and on other devices.
ENTRIES, MANY_ENTRIES = 1 << 22, 1 << 27


def whole_weights(networks: Networks, table: WordTable) -> Weights:
    """Return the weights of all states, without noise."""
    with torch.no_grad():
        return networks.weights(table, Noise(None, table.groups.device), networks.size)


@torch.no_grad()
def scores(weights: Weights, text: Text) -> Array:
    """Return the log probability of each chain, (C,)."""
    found = np.zeros(len(text.chains()) - 1)
    for chosen, stretches in _stretches(weights, text):
        carried, total = Carried.nothing(weights, len(chosen)), torch.zeros(len(chosen), dtype=torch.float64)
        for stretch in stretches:
            logs, carried = log_likelihood(weights, stretch, carried)
            total += logs.double().cpu()
        found[chosen] = total.numpy()
    return found


@torch.no_grad()
def best_states(weights: Weights, text: Text) -> Index:
    """Return the most probable states of each chain, one after the other, (N,)."""
    out, edges = np.empty(len(text.words), dtype=np.int64), text.chains()
    for chosen, stretches in _stretches(weights, text):
        paths = _best_paths(weights, list(stretches)).cpu().numpy()
        for chain, path in zip(chosen, paths, strict=True):
            start, stop = edges[chain], edges[chain + 1]
            out[start:stop] = path[: stop - start]
    return out


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


def _stretches(weights: Weights, text: Text) -> Iterator[tuple[Index, Iterator[Stretch]]]:
    """Yield chains that run side by side, and their stretches one after the other."""
    device = weights.start.device
    entries = ENTRIES if device.type == "cpu" else MANY_ENTRIES
    size = max(1, entries // weights.size**2 if weights.table.n_groups > 1 else entries // weights.size)
    for chosen in sentence_groups(text, size):
        whole = of_chains(text, chosen, device)
        length = max(1, size // len(chosen))
        cuts = range(0, whole.words.shape[1], length)
        yield chosen, (whole.between(at, at + length) for at in cuts)


@torch.no_grad()
def sample(weights: Weights, n: int, end: int | None, seed: int) -> tuple[Index, Index]:
    """Return words and states of a text of n words; behind the word `end` comes a first state."""
    rng, n_states = np.random.default_rng(seed), weights.start.numel()
    first = weights.start.flatten().exp().double().cpu().numpy()
    members = weights.table.members.cpu().numpy()
    words, states = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for position in range(n):
        if position == 0 or words[position - 1] == end:
            law = first
        else:
            law = weights.transition.rows(_one(states[position - 1], weights))[0].double().cpu().numpy()
        states[position] = rng.choice(n_states, p=law / law.sum())
        law = weights.emissions.rows(_one(states[position], weights))[0].double().cpu().numpy()
        group = states[position] // weights.size
        words[position] = members[group][rng.choice(len(law), p=law / law.sum())]
    return words, states


def _one(state: np.int64, weights: Weights) -> Tensor:
    return torch.tensor([int(state)], device=weights.start.device)
