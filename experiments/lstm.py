"""An LSTM language model of about a given number of parameters, as a baseline; it needs PyTorch.

Words have embeddings that are also those of the output layer, and dropout is on embeddings, between layers and before
the output (Zaremba, Sutskever & Vinyals, Recurrent Neural Network Regularization, 2014; Press & Wolf, Using the Output
Embedding, 2017). Sentences are independent, as for the models that it is compared with.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import time

import numpy as np
import torch
from torch import Tensor, nn

from subchain.data import Sequences
from subchain.neural.batches import Batch, Text, sentence_groups, sentences
from subchain.neural.device import resolve_device

#: Largest norm of a gradient, share of the step size that the cosine ends with, and its greatest value.
CLIP, LAST, RATE = 1.0, 0.01, 2e-3
#: Words of an update of the evaluation.
WORDS = 1024


class Network(nn.Module):
    """Embeddings, layers of LSTM, and the scores of the next word."""

    def __init__(self, n_words: int, width: int, n_layers: int, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(n_words + 1, width)  # the last one begins sentences
        nn.init.normal_(self.words.weight, std=width**-0.5)
        self.layers = nn.LSTM(width, width, n_layers, batch_first=True, dropout=dropout if n_layers > 1 else 0.0)
        self.bias = nn.Parameter(torch.zeros(n_words))
        self.dropout = nn.Dropout(dropout)

    def forward(self, before: Tensor) -> Tensor:
        """Return the scores (B, T, W) of the words behind words (B, T)."""
        hidden, _ = self.layers(self.dropout(self.words(before)))
        scores: Tensor = self.dropout(hidden) @ self.words.weight[:-1].T + self.bias
        return scores


@dataclasses.dataclass
class Found:
    """A trained model: what it is compared by.

    Attributes
    ----------
    n_parameters : number of parameters
    train : perplexity of the training text in the last epoch, with dropout
    valid, test : perplexities under the weights that are best on the validation text
    seconds : time of training
    """

    n_parameters: int
    train: float
    valid: float
    test: float
    seconds: float


def width_for(budget: int, n_words: int, n_layers: int) -> int:
    """Return the largest width, a multiple of 8, with at most so many parameters.

    Examples
    --------
    >>> width_for(3_600_000, 10_000, 2)
    248
    """
    width = 8
    while (n_words + 1) * (width + 8) + n_layers * (8 * (width + 8) ** 2 + 8 * (width + 8)) + n_words <= budget:
        width += 8
    return width


def trained(
    train: Sequences, valid: Sequences, test: Sequences, n_words: int, budget: int, epochs: int, seed: int,
    size: int, n_layers: int = 2, dropout: float = 0.5,
) -> Found:  # fmt: skip
    """Train a model of at most `budget` parameters; keep the best epoch.

    By AdamW with a cosine schedule, on whole sentences of similar lengths with about `size` words in an update.
    """
    device = resolve_device("auto")
    texts = [Text.of(np.asarray(part.values).reshape(-1), part.offsets, joined=False) for part in (train, valid, test)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Network(n_words, width_for(budget, n_words, n_layers), n_layers, dropout).to(device)
        optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
        n_updates = len(sentence_groups(texts[0], size))
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer,
            lambda n: LAST + (1.0 - LAST) * 0.5 * (1.0 + math.cos(math.pi * min(n / (epochs * n_updates), 1))),
        )
        best, kept, begin = math.inf, copy.deepcopy(network.state_dict()), time.perf_counter()
        last = math.nan
        for epoch in range(epochs):
            order, total = np.random.default_rng([seed, epoch]).permutation(n_updates), 0.0
            network.train()
            for batch in sentences(texts[0], size, device, order):
                loss = _loss(network, batch)
                optimizer.zero_grad(set_to_none=True)
                (loss / batch.stretch.known.sum()).backward()
                nn.utils.clip_grad_norm_(network.parameters(), CLIP)
                optimizer.step()
                scheduler.step()
                total += float(loss.detach())
            last = math.exp(total / len(texts[0].words))
            here = perplexity(network, texts[1], device)
            if here < best:
                best, kept = here, copy.deepcopy(network.state_dict())
        network.load_state_dict(kept)
        seconds = time.perf_counter() - begin
    n_parameters = sum(parameter.numel() for parameter in network.parameters())
    return Found(n_parameters, last, best, perplexity(network, texts[2], device), seconds)


@torch.no_grad()
def perplexity(network: Network, text: Text, device: torch.device) -> float:
    """Return exp of the mean negative log probability of a word; words that end sentences count like others."""
    network.eval()
    total = sum(float(_loss(network, batch)) for batch in sentences(text, WORDS, device))
    return math.exp(total / len(text.words))


def _loss(network: Network, batch: Batch) -> Tensor:
    """Return the negative log probability of all words of a batch of sentences."""
    words, known = batch.stretch.words, batch.stretch.known
    begin = torch.full_like(words[:, :1], network.words.num_embeddings - 1)
    scores = network(torch.cat([begin, words[:, :-1]], dim=1))
    return nn.functional.cross_entropy(scores[known], words[known], reduction="sum")
