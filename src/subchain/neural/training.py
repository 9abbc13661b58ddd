"""Training by gradients of the log likelihood, with what a checkpoint needs to go on in the same way."""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from subchain.errors import InferenceError
from subchain.inference.run.interrupts import AbortedError, Postponed
from subchain.neural.batches import Batch, Text, pieces, sentence_groups, sentences
from subchain.neural.chain import Carried, log_likelihood
from subchain.neural.emissions import WordTable
from subchain.neural.evaluation import perplexity, scores, whole_weights
from subchain.neural.networks import Noise
from subchain.neural.parameters import PRECISIONS, Networks
from subchain.neural.settings import Training

#: Factor of the step size on a plateau, and the share of it that the cosine ends with.
CUT, LAST = 0.25, 0.01
#: The average of n updates keeps at most (1 + n) / (WARM + n).
WARM = 10.0

Tensors = dict[str, Tensor]


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

    def add(self, *values: float) -> None:
        """Add an epoch; the values are in the order of the attributes."""
        for name, value in zip(TRACE, values, strict=True):
            getattr(self, name).append(value)


#: Attributes of a trace.
TRACE = tuple(field.name for field in dataclasses.fields(NeuralTrace))


class RunMemory(NamedTuple):
    """Everything that a run needs to go on after an epoch.

    Attributes
    ----------
    networks, averaged, best : raw, averaged and best weights by name; None for averages that are not kept
    optimizer : what AdamW keeps for each parameter
    trace, updates, rate : history, number of updates and step size
    """

    networks: Tensors
    averaged: Tensors | None
    best: Tensors
    optimizer: dict[int, Tensors]
    trace: NeuralTrace
    updates: int
    rate: float


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
        self.kind = PRECISIONS[settings.precision][0]
        self.averaged = copy.deepcopy(networks) if settings.averaging else None
        self.best = {name: value.clone() for name, value in networks.state_dict().items()}
        self.optimizer = torch.optim.AdamW(
            networks.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay,
            fused=self.device.type == "cuda",
        )  # fmt: skip
        self.trace = NeuralTrace()
        self.updates = 0
        self.rate = float(settings.learning_rate)
        self._pieces: list[Batch] = []
        if settings.batch == "pieces":
            self._pieces = pieces(text, settings.streams, settings.length, self.device)
        self.updates_of_epoch = len(self._pieces) or len(sentence_groups(text, settings.streams * settings.length))
        self.n_kept = max(1, round(networks.size * (1.0 - settings.state_dropout)))

    # ---- the run -----------------------------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether all epochs have passed, or the last ones brought nothing better."""
        n, patience = len(self.trace), self.settings.patience
        if patience is not None and n and n - 1 - int(np.argmin(self.trace.best)) >= patience:
            return True
        return n >= self.settings.epochs

    def run(self, report: Callable[[NeuralTrace], None], save: Callable[[Trainer], None]) -> bool:
        """Train until done; `report` and `save` are called after every epoch.

        An interruption ends the run between two updates: return whether there was none. It is passed on if no epoch is
        complete.
        """
        with Postponed() as interruption:
            while not self.is_done:
                try:
                    self.epoch(interruption.check)
                except AbortedError:
                    raise
                except KeyboardInterrupt:
                    if not len(self.trace):
                        raise
                    return False
                report(self.trace)
                save(self)
        return True

    def epoch(self, pause: Callable[[], None] = lambda: None) -> None:
        """Make one pass over the text, and validate; `pause` is called before every update."""
        begin, before = time.perf_counter(), self.trace.seconds[-1] if self.trace.seconds else 0.0
        total, carried = torch.zeros((), dtype=torch.float64, device=self.device), None
        for batch in self._batches():
            pause()
            logs, carried = self.update(batch, carried if batch.continues else None)
            total += logs
        train = perplexity(float(total), len(self.text.words))
        self._check_finite(train)
        raw, averaged = self.validated(self.networks), self.validated(self.averaged)
        found, least = float(np.fmin(raw, averaged)), min(self.trace.best, default=math.inf)
        if self.validation is not None and not math.isfinite(found):
            raise self._diverged(f"the validation perplexity is {found}")
        if self.validation is None or found < least:
            self._keep(raw, averaged)
        if self.settings.schedule == "plateau" and found >= least:
            self.rate *= CUT
        self.trace.add(train, raw, averaged, self.rate, before + time.perf_counter() - begin)

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
        return whole_perplexity(networks, self.table, self.validation)

    def _keep(self, raw: float, averaged: float) -> None:
        """Keep the better ones of raw and averaged weights; without validation the averages if there are any."""
        source = self.networks if self.averaged is None or raw < averaged else self.averaged
        self.best = {name: value.clone() for name, value in source.state_dict().items()}

    def _check_finite(self, train: float) -> None:
        """Raise an `InferenceError` if the epoch has ended in numbers that are not finite."""
        if not math.isfinite(train):
            raise self._diverged(f"the training perplexity is {train}")
        if not all(bool(torch.isfinite(parameter).all()) for parameter in self.networks.parameters()):
            raise self._diverged("parameters are not finite")

    def _diverged(self, what: str) -> InferenceError:
        return InferenceError(
            f"training diverged in epoch {len(self.trace) + 1}: {what}. Use a smaller learning_rate (it is "
            f"{self.settings.learning_rate:g}). A checkpoint, if there is one, is that of the epoch before."
        )

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def memory(self) -> RunMemory:
        """Return everything that a run needs to go on after this epoch."""
        averaged = None if self.averaged is None else self.averaged.state_dict()
        moments = self.optimizer.state_dict()["state"]
        return RunMemory(self.networks.state_dict(), averaged, self.best, moments, self.trace, self.updates, self.rate)

    def restore(self, memory: RunMemory) -> None:
        """Go on from what `memory` returned."""
        self.networks.load_state_dict(memory.networks)
        if self.averaged is not None and memory.averaged is not None:
            self.averaged.load_state_dict(memory.averaged)
        self.best = {name: value.to(self.device) for name, value in memory.best.items()}
        groups: Any = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": memory.optimizer, "param_groups": groups})
        self.trace, self.updates, self.rate = memory.trace, memory.updates, memory.rate


def whole_perplexity(networks: Networks, table: WordTable, text: Text) -> float:
    """Return the perplexity of a text under the weights of all states."""
    return perplexity(float(scores(whole_weights(networks, table), text).sum()), len(text.words))
