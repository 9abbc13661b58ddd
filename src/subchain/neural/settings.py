"""Settings of training, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from subchain.core.components import Component
from subchain.errors import InputError, unknown_name
from subchain.neural.parameters import PRECISIONS

BATCHES = ("pieces", "sentences")
SCHEDULES = ("cosine", "plateau", "constant")


class Training(Component):
    """How a `NeuralHMM` is trained: AdamW on the log likelihood of stretches of text.

    Parameters
    ----------
    epochs : int
        Number of passes over the text.
    batch : "pieces" or "sentences"
        What an update sees: pieces of `length` words of each of `streams` streams of text, with the posterior marginals
        of states carried over from one update to the next; or whole sentences of similar lengths, `streams` · `length`
        words in all.
    streams, length : int
        Number of streams, and words of each in an update.
    learning_rate : float
        Largest step size.
    schedule : "cosine", "plateau" or "constant"
        "cosine" lets the step size fall to a hundredth over all updates. "plateau" divides it by 4 after each epoch
        that does not improve the validation perplexity.
    weight_decay : float
        Weight decay of AdamW.
    clip : float
        Largest norm of the gradient.
    averaging : float
        Share that the exponential moving average of all weights keeps in an update; 0 for none. The averaged weights
        are validated beside the raw ones, and the better ones are the result.
    patience : int, optional
        Stop after so many epochs without a better validation perplexity. The best weights are the result in any case.
    state_dropout : float
        Share of the states of each group that an update leaves out. Probabilities are normalised over the others.
    network_dropout : float
        Share of the entries inside networks that are dropped.
    precision : "mixed", "single" or "double"
        Floating type; "mixed" computes large products in bfloat16 and everything else in single precision. Evaluation
        is in single precision then.

    Examples
    --------
    >>> Training(epochs=3, schedule="plateau")
    Training(epochs=3, schedule='plateau')
    """

    def __init__(
        self,
        epochs: int = 16,
        batch: str = "pieces",
        streams: int = 32,
        length: int = 32,
        learning_rate: float = 2e-3,
        schedule: str = "cosine",
        weight_decay: float = 0.02,
        clip: float = 5.0,
        averaging: float = 0.999,
        patience: int | None = None,
        state_dropout: float = 0.5,
        network_dropout: float = 0.1,
        precision: str = "single",
    ) -> None:
        self.epochs = epochs
        self.batch = batch
        self.streams = streams
        self.length = length
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.clip = clip
        self.averaging = averaging
        self.patience = patience
        self.state_dropout = state_dropout
        self.network_dropout = network_dropout
        self.precision = precision

    def identity(self) -> dict[str, Any]:
        """Return the settings that must be the same for a run to be resumed: a run may go on for more epochs.

        The cosine depends on their number.
        """
        settings = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in self.get_params().items()
        }
        for name in ("patience",) if self.schedule == "cosine" else ("patience", "epochs"):
            del settings[name]
        return settings

    def check(self, *, has_validation: bool, joined: bool) -> None:
        """Raise an `InputError` for a setting that is out of range, or does not suit the data."""
        for name in ("epochs", "streams", "length"):
            whole_number(name, getattr(self, name))
        for name, known in (("batch", BATCHES), ("schedule", SCHEDULES), ("precision", tuple(PRECISIONS))):
            if getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known)
        for name in ("state_dropout", "network_dropout", "averaging"):
            _number(name, getattr(self, name), 0.0, 1.0)
        _number("learning_rate", self.learning_rate, 0.0, np.inf, is_open=True)
        _number("clip", self.clip, 0.0, np.inf, is_open=True)
        _number("weight_decay", self.weight_decay, 0.0, np.inf)
        if self.patience is not None:
            whole_number("patience", self.patience)
        if not has_validation and (self.schedule == "plateau" or self.patience is not None):
            raise InputError(
                "schedule='plateau' and patience= need the perplexity of validation data: give fit validation=…, or "
                "use schedule='cosine' without patience."
            )
        if joined and self.batch == "sentences":
            raise InputError(
                "batch='sentences' needs independent sequences, but joined=True makes all of them one chain; use "
                "batch='pieces'."
            )


def whole_number(name: str, given: Any) -> int:
    """Return a whole number of at least 1; raise an `InputError` for anything else."""
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise InputError(f"{name} must be a whole number of at least 1, not {given!r}.")
    return int(given)


def _number(name: str, given: Any, least: float, most: float, *, is_open: bool = False) -> None:
    """Raise an `InputError` unless a number is within [least, most), or (least, most) if `is_open`."""
    is_number = isinstance(given, (int, float, np.number)) and not isinstance(given, bool)
    if not is_number or not (least < given if is_open else least <= given) or not given < most:
        what = "above" if is_open else "at least"
        bound = "" if most == np.inf else f" and below {most:g}"
        raise InputError(f"{name} must be a number {what} {least:g}{bound}, not {given!r}.")
