"""What a run is about: the data with what is hidden in them, the prior, and how results are judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from subchain.core.parts import Posterior
from subchain.data.mapped import MappedFile, intact
from subchain.inference.run.validation import Validation
from subchain.structures.base import Structure

if TYPE_CHECKING:
    from subchain.inference.run.loop import Search


@dataclasses.dataclass
class Problem:
    """Everything that an algorithm may look at.

    Attributes
    ----------
    structure : the training data and what is hidden in them
    prior : distribution over models before the data
    exact : whether the updates of all parts maximise the bound, so that it cannot fall
    validation : scores models on held-out data, or None
    search : tries other numbers of states during a run, or None
    files : the mapped files that the data and the validation are read from
    """

    structure: Structure
    prior: Posterior
    exact: bool = True
    validation: Validation | None = None
    search: Search | None = None
    files: Sequence[MappedFile] = ()

    def intact(self) -> AbstractContextManager[None]:
        """Return a context at whose end an `InputError` is raised if one of the files has changed."""
        return intact(*self.files)
