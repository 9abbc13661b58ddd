"""One call of `NeuralHMM.fit`: its arguments checked, and the run that they ask for."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.components import clone
from subchain.core.files import checked_target
from subchain.data import as_sequences
from subchain.data.digest import digest
from subchain.data.word_groups import word_groups
from subchain.errors import InputError
from subchain.neural import checkpoints
from subchain.neural.device import resolve_device
from subchain.neural.emissions import WordTable
from subchain.neural.files import plain_transition
from subchain.neural.fitted import Trained
from subchain.neural.networks import seeded
from subchain.neural.parameters import PRECISIONS, Networks
from subchain.neural.progress import printer
from subchain.neural.reading import check_codes, common_end, data_like, text_of
from subchain.neural.settings import Training, whole_number
from subchain.neural.training import Trainer
from subchain.neural.transitions import transition_of
from subchain.numerics.seeds import seed_sequence

PathLike = str | os.PathLike[str]


class NeuralFit:
    """Checked arguments of one call of `fit`; the model is read, and never changed."""

    def __init__(self, model: Any, x: Any, validation: Any, checkpoint: PathLike | None, resume: bool | None) -> None:
        self.settings: Training = clone(Training() if model.training is None else model.training)
        self.settings.check(has_validation=validation is not None, joined=bool(model.joined))
        _check_target(checkpoint, resume)
        self.checkpoint = checkpoint
        self.resumes = bool(resume) and checkpoint is not None and Path(checkpoint).exists()
        self.transition = transition_of(model.transition)
        self.joined, self.progress = bool(model.joined), bool(model.progress)
        self.random_state = model.random_state
        self.data = as_sequences(x)
        check_codes(self.data)
        groups = self._groups(model.groups)
        self.text = text_of(self.data, len(groups), joined=self.joined)
        self.held_out = None
        if validation is not None:
            self.held_out = text_of(data_like(validation, self.data.vocabulary), len(groups), joined=self.joined)
        self.seed = self._seed()
        self.shape = _shape(model, groups)
        device = resolve_device(model.device)
        self.table = WordTable.of(groups, device)
        with seeded(self.seed):  # on the processor, so that the parameters do not depend on the device
            networks = Networks(len(groups), *self.shape, self.transition)
        self.networks = networks.to(device=device, dtype=PRECISIONS[self.settings.precision][0])
        self._groups_digest = digest(groups)

    def run(self) -> Trained:
        """Train, and return what was found."""
        trainer = Trainer(self.networks, self.table, self.settings, self.text, self.held_out, self.seed)
        identity = self._identity()
        if self.checkpoint is not None and self.resumes:
            checkpoints.read(self.checkpoint, trainer, identity)

        def save(run: Trainer) -> None:
            if self.checkpoint is not None:
                checkpoints.write(self.checkpoint, run, identity)

        if not trainer.run(printer(self.progress), save):
            warnings.warn("the fit was interrupted; the model is that of the last whole epoch.", stacklevel=4)
        self.networks.load_state_dict(trainer.best)
        return Trained(
            self.networks, self.table, self.transition, self.settings.precision, self.joined, self.data.vocabulary,
            common_end(self.data), trainer.trace,
        )  # fmt: skip

    def _groups(self, given: Any) -> NDArray[np.int64]:
        vocabulary = self.data.vocabulary
        if given is not None:
            return word_groups(given, vocabulary)
        n_words = max(int(self.data.value_range()[1]) + 1, 1) if vocabulary is None else len(vocabulary)
        return np.zeros(n_words, dtype=np.int64)

    def _seed(self) -> int:
        """Return the seed of all random numbers: without a random state that of the run that is resumed."""
        if self.random_state is None and self.resumes and self.checkpoint is not None:
            return checkpoints.stored_seed(self.checkpoint)
        return int(seed_sequence(self.random_state).generate_state(1)[0])

    def _identity(self) -> dict[str, Any]:
        """Return what must be the same for a checkpoint to be resumed."""
        n_groups, size, width = self.shape
        return {
            "n_states": n_groups * size, "embedding": width, "joined": self.joined,
            "transition": plain_transition(self.transition), "training": self.settings.identity(),
            "groups": self._groups_digest, "random_state": None if self.random_state is None else self.seed,
            "text": digest([self.text.words, self.text.begins]),
            "validation": None if self.held_out is None else digest([self.held_out.words, self.held_out.begins]),
        }  # fmt: skip


def _shape(model: Any, groups: NDArray[np.int64]) -> tuple[int, int, int]:
    """Return the number of groups, the states of each, and the length of embeddings."""
    n_groups = int(groups.max()) + 1
    n_states, width = whole_number("n_states", model.n_states), whole_number("embedding", model.embedding)
    if n_states % n_groups:
        above = math.ceil(n_states / n_groups) * n_groups
        raise InputError(
            f"n_states={n_states} cannot be divided among {n_groups} groups of words; give a multiple of {n_groups}, "
            f"such as {above}."
        )
    if width < 2:
        raise InputError(f"embedding must be at least 2, not {width}.")
    return n_groups, n_states // n_groups, width


def _check_target(checkpoint: PathLike | None, resume: bool | None) -> None:
    """Raise an `InputError` for a checkpoint that cannot be written or would be overwritten."""
    if checkpoint is None:
        if resume:
            raise InputError("resume=True needs checkpoint=PATH, the file to resume from.")
        return
    exists = checked_target(checkpoint).exists()
    if exists and resume is None:
        raise InputError(
            f"the checkpoint {os.fspath(checkpoint)!r} exists already: resume=True continues the run that wrote it, "
            "resume=False begins again and overwrites it."
        )
    if resume and not exists:
        warnings.warn(f"there is no checkpoint {os.fspath(checkpoint)!r} yet; the fit begins afresh.", stacklevel=5)
