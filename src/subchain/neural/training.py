"""Training by gradients of the log likelihood, with what a checkpoint needs to go on in the same way."""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from subchain.neural.batches import Batch, Text, pieces, sentence_groups, sentences
from subchain.neural.chain import Carried, log_likelihood
from subchain.neural.emissions import WordTable
from subchain.neural.evaluation import scores, whole_weights
from subchain.neural.networks import Noise
from subchain.neural.parameters import PRECISIONS, Networks
from subchain.neural.settings import Training

#: Factor of the step size on a plateau, and the share of it that the cosine ends with.
CUT, LAST = 0.25, 0.01
#: The average of n updates keeps at most (1 + n) / (WARM + n).
WARM = 10.0


@dataclasses.dataclass
class NeuralTrace:
    """History of training, one entry for each epoch.

    Attributes
    ----------
    train : perplexity of the training text during the epoch, with dropout
    validation, averaged : perplexity of the validation data under the raw and the averaged weights; nan without
    learning_rate : step size at the end of the epoch
    seconds : time since the start of training, all runs together
    """

    train: list[float] = dataclasses.field(default_factory=list)
    validation: list[float] = dataclasses.field(default_factory=list)
    averaged: list[float] = dataclasses.field(default_factory=list)
    learning_rate: list[float] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)

    def __len__(self) -> int:
        return len(self.train)

    @property
    def best(self) -> list[float]:
        """The better one of both validation perplexities of each epoch."""
        return [float(np.fmin(*pair)) for pair in zip(self.validation, self.averaged, strict=True)]


class Trainer:
    """The state of a training run.

    Parameters
    ----------
    networks : what is trained, on its device
    table : the words
    settings : Training
    text, validation : what is trained on, and validated on
    seed : of all random masks and orders
    """

    def __init__(
        self, networks: Networks, table: WordTable, settings: Training, text: Text, validation: Text | None, seed: int
    ) -> None:
        self.networks = networks
        self.table = table
        self.settings = settings
        self.text = text
        self.validation = validation
        self.seed = seed
        self.device = table.groups.device
        self.averaged = copy.deepcopy(networks) if settings.averaging else None
        self.best = {name: value.clone() for name, value in networks.state_dict().items()}
        self.optimizer = torch.optim.AdamW(
            networks.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay,
            fused=self.device.type == "cuda",
        )  # fmt: skip
        self.trace = NeuralTrace()
        self.updates = 0
        self.rate = settings.learning_rate
        size = settings.streams * settings.length
        self._pieces = pieces(text, settings.streams, settings.length, self.device)
        if settings.batch == "pieces":
            self.updates_of_epoch = len(self._pieces)
        else:
            self.updates_of_epoch = len(sentence_groups(text, size))
        self.n_kept = max(1, round(networks.size * (1.0 - settings.state_dropout)))

    # ---- the run -----------------------------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether all epochs have passed, or the last ones brought nothing better."""
        n, patience = len(self.trace), self.settings.patience
        if patience is not None and n and n - 1 - int(np.argmin(self.trace.best)) >= patience:
            return True
        return n >= self.settings.epochs

    def run(self, report: Callable[[NeuralTrace], None], save: Callable[[Trainer], None]) -> None:
        """Train until done; `report` and `save` are called after every epoch."""
        while not self.is_done:
            self.epoch()
            report(self.trace)
            save(self)

    def epoch(self) -> None:
        """Make one pass over the text, and validate."""
        begin, before = time.perf_counter(), self.trace.seconds[-1] if self.trace.seconds else 0.0
        total, n_words, carried = torch.zeros((), dtype=torch.float64, device=self.device), 0, None
        for batch in self._batches():
            logs, carried = self.update(batch, carried if batch.continues else None)
            total += logs
        n_words = len(self.text.words)
        perplexity = math.exp(-float(total) / n_words)
        self.trace.train.append(perplexity)
        raw, averaged = self.validated(self.networks), self.validated(self.averaged)
        self._keep_best(raw, averaged)
        self.trace.validation.append(raw)
        self.trace.averaged.append(averaged)
        self._cut_rate()
        self.trace.learning_rate.append(self.rate)
        self.trace.seconds.append(before + time.perf_counter() - begin)

    def _batches(self) -> Iterator[Batch]:
        if self.settings.batch == "pieces":
            return iter(self._pieces)
        order = np.random.default_rng([self.seed, len(self.trace)]).permutation(self.updates_of_epoch)
        return sentences(self.text, self.settings.streams * self.settings.length, self.device, order)

    def update(self, batch: Batch, carried: Carried | None) -> tuple[Tensor, Carried]:
        """Take one step; return the log likelihood of its words, and what is carried on."""
        seed = int(np.random.SeedSequence([self.seed, self.updates]).generate_state(1, np.uint64)[0] >> 1)
        kind = PRECISIONS[self.settings.precision][1]
        weights = self.networks.weights(
            self.table, Noise(seed, self.device), self.n_kept, self.settings.network_dropout, kind
        )
        before = Carried.nothing(weights, len(batch.stretch.words)) if carried is None else carried
        logs, after = log_likelihood(weights, batch.stretch, before)
        total = logs.sum()
        self.optimizer.zero_grad(set_to_none=True)
        (-total / batch.stretch.known.sum()).backward()
        torch.nn.utils.clip_grad_norm_(self.networks.parameters(), self.settings.clip)
        self._set_rate()
        self.optimizer.step()
        self.updates += 1
        self._average()
        return total.detach(), after

    def _set_rate(self) -> None:
        if self.settings.schedule == "cosine":
            share = self.updates / (self.settings.epochs * self.updates_of_epoch)
            fall = 0.5 * (1.0 + math.cos(math.pi * min(share, 1.0)))
            self.rate = self.settings.learning_rate * (LAST + (1.0 - LAST) * fall)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate

    def _cut_rate(self) -> None:
        best = self.trace.best if self.settings.schedule == "plateau" else []
        if len(best) > 1 and best[-1] >= min(best[:-1]):
            self.rate *= CUT

    @torch.no_grad()
    def _average(self) -> None:
        if self.averaged is None:
            return
        keep = min(self.settings.averaging, (1.0 + self.updates) / (WARM + self.updates))
        torch._foreach_lerp_(list(self.averaged.parameters()), list(self.networks.parameters()), 1.0 - keep)

    # ---- validation --------------------------------------------------------------------------------------------------

    def validated(self, networks: Networks | None) -> float:
        """Return the perplexity of the validation data; nan without."""
        if networks is None or self.validation is None:
            return math.nan
        return perplexity(networks, self.table, self.validation)

    def _keep_best(self, raw: float, averaged: float) -> None:
        """Keep the best weights on the validation data; without these the last ones, averaged if there are averages."""
        source = self.networks if self.averaged is None or raw < averaged else self.averaged
        if self.validation is None or float(np.fmin(raw, averaged)) < min(self.trace.best, default=math.inf):
            self.best = {name: value.clone() for name, value in source.state_dict().items()}

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return everything that a run needs to go on after this epoch."""
        return {
            "networks": self.networks.state_dict(),
            "averaged": None if self.averaged is None else self.averaged.state_dict(),
            "best": self.best,
            "optimizer": self.optimizer.state_dict(),
            "trace": dataclasses.asdict(self.trace),
            "updates": self.updates,
            "rate": self.rate,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state that `state` returned."""
        self.networks.load_state_dict(state["networks"])
        if self.averaged is not None:
            self.averaged.load_state_dict(state["averaged"])
        self.best = {name: value.to(self.device) for name, value in state["best"].items()}
        self.optimizer.load_state_dict(state["optimizer"])
        self.trace = NeuralTrace(**state["trace"])
        self.updates, self.rate = state["updates"], state["rate"]


def perplexity(networks: Networks, table: WordTable, text: Text) -> float:
    """Return exp of the mean negative log probability of a word."""
    return math.exp(-scores(whole_weights(networks, table), text).sum() / max(len(text.words), 1))
