"""Segments: maximal runs of equal decoded states, with their mean posterior probability.

States are decoded as by `predict`, into the smallest sufficient integer type, and a second pass computes their
posterior marginals. This takes a few bytes per position whatever the number of states, so that chains of 10⁷ positions
in a file are feasible.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from subchain.errors import ImpossibleSequenceError, InputError, unknown_name
from subchain.tasks import bed
from subchain.tasks.colours import ranks, shaded
from subchain.tasks.decoding import decode_states
from subchain.tasks.impossible import possible_part
from subchain.tasks.marginals import of_states
from subchain.tasks.question import Question

Index = NDArray[np.int64]


class Segment(NamedTuple):
    """A maximal run of equal states.

    Attributes
    ----------
    sequence : index of the sequence
    sequence_name : its name, or None
    start, stop : first position, and the one after the last, within the sequence
    state : index of the state
    state_name : its name
    probability : mean posterior probability of the state over the segment
    """

    sequence: int
    sequence_name: str | int | None
    start: int
    stop: int
    state: int
    state_name: str
    probability: float


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Segments:
    """Table of n segments, one array per column.

    `len(found)` is the number of segments, `found[3]` one of them, `found[found.probability > 0.9]` a selection;
    iteration yields `Segment` tuples. Without selection the segments cover every position.

    Attributes
    ----------
    sequence : (n,) index of the sequence
    start, stop : (n,) first position, and the one after the last, within the sequence
    state : (n,) index of the state
    probability : (n,) mean posterior probability of the state over the segment
    sequence_names : names of all sequences, or None
    state_names : names of all states
    n_sequences : number of all sequences, including those without segments
    colours : colours of all states, "#rrggbb", the same as in reports and plots

    Examples
    --------
    >>> from subchain import HMM, Categorical
    >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
    >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
    >>> found = model.segments({"a": [0, 0, 0, 1, 1, 1], "b": [1, 1]})
    >>> found
    Segments(3 segments of 2 sequences in 2 states)
    >>> found.start, found.stop, found.length
    (array([0, 3, 0]), array([3, 6, 2]), array([3, 3, 2]))
    >>> found.of("b")[0]
    Segment(sequence=1, sequence_name='b', start=0, stop=2, state=1, state_name='1', probability=0.97...)
    """

    sequence: Index
    start: Index
    stop: Index
    state: Index
    probability: NDArray[np.float64]
    sequence_names: tuple[str | int, ...] | None
    state_names: tuple[str, ...]
    n_sequences: int
    colours: tuple[str, ...]

    @property
    def length(self) -> Index:
        """Number of positions of each segment, (n,)."""
        return self.stop - self.start

    def __len__(self) -> int:
        return len(self.start)

    def __iter__(self) -> Iterator[Segment]:
        return map(self._one, range(len(self)))

    @overload
    def __getitem__(self, which: int | np.integer[Any]) -> Segment: ...
    @overload
    def __getitem__(self, which: slice | Sequence[int] | NDArray[Any]) -> Segments: ...
    def __getitem__(self, which: int | np.integer[Any] | slice | Sequence[int] | NDArray[Any]) -> Segment | Segments:
        if isinstance(which, (int, np.integer)):
            return self._one(int(which))
        chosen = np.arange(len(self))[which]
        columns = ("sequence", "start", "stop", "state", "probability")
        return dataclasses.replace(self, **{name: getattr(self, name)[chosen] for name in columns})

    def _one(self, index: int) -> Segment:
        sequence, state = int(self.sequence[index]), int(self.state[index])
        name = None if self.sequence_names is None else self.sequence_names[sequence]
        edges = int(self.start[index]), int(self.stop[index])
        return Segment(sequence, name, *edges, state, self.state_names[state], float(self.probability[index]))

    def __repr__(self) -> str:
        counts = {
            "segment": len(self), "sequence": len(np.unique(self.sequence)), "state": len(np.unique(self.state))
        }  # fmt: skip
        segments, sequences, states = (f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts.items())
        return f"Segments({segments} of {sequences} in {states})"

    def of(self, sequence: str | int) -> Segments:
        """Return the segments of one sequence.

        Parameters
        ----------
        sequence : str or int
            Its name, or its index among all sequences.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.segments({"a": [0, 0, 1, 1], "b": [1, 1]}).of("a")
        Segments(2 segments of 1 sequence in 2 states)
        """
        names = self.sequence_names or ()
        if sequence in names:
            number = names.index(sequence)
        elif isinstance(sequence, (int, np.integer)) and 0 <= sequence < self.n_sequences:
            number = int(sequence)
        elif names:
            raise unknown_name("sequence", str(sequence), [str(name) for name in names])
        else:
            raise InputError(
                f"there is no sequence {sequence!r}; sequences have no names here, and indices run from 0 to "
                f"{self.n_sequences - 1}."
            )
        return self[self.sequence == number]

    def to_pandas(self) -> Any:
        """Return the segments as a pandas data frame; sequences are given by name, or by index if they have none.

        Examples
        --------
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> model.segments({"a": [0, 0, 1, 1], "b": [1, 1]}).to_pandas().round(2)
          sequence  start  stop state  probability
        0        a      0     2     0         0.71
        1        a      2     4     1         0.89
        2        b      0     2     1         0.97
        """
        try:
            import pandas
        except ImportError:
            raise InputError("to_pandas needs pandas, which is not installed; run pip install pandas.") from None
        names = np.arange(self.n_sequences) if self.sequence_names is None else np.array(self.sequence_names, object)
        columns = {
            "sequence": names[self.sequence], "start": self.start, "stop": self.stop,
            "state": np.array(self.state_names, dtype=object)[self.state], "probability": self.probability,
        }  # fmt: skip
        return pandas.DataFrame(columns)

    def to_bed(
        self,
        path: str | os.PathLike[str],
        *,
        chrom: str | Sequence[str] | None = None,
        step: int = 1,
        offset: int | Sequence[int] = 0,
        colours: bool | Mapping[str, str] = True,
        track: str | None = None,
    ) -> None:
        """Write the segments as a BED file, for genome browsers and their tools.

        The file has nine columns: chromosome, start, end (exclusive, from 0), name of the state, score (1000 times the
        mean probability), strand (none), start and end again, colour. It appears under its name when it is complete.

        Parameters
        ----------
        path : str or path
        chrom : str, or one for each sequence of the data, optional
            The chromosome; by default the names of the sequences. Sequences on one chromosome must not overlap; write
            one file for each of several cell lines, for example `found.of("K562").to_bed(path)`.
        step : int
            Number of bases per position.
        offset : int, or one for each sequence of the data
            First base of the first position.
        colours : bool, or mapping from names of states to "#rrggbb"
            The colours of reports and plots (beyond eight states, shades of them), or your own. False omits all columns
            after the name of the state.
        track : str, optional
            Name of a track. It is written as a first line that makes browsers show the colours; some other tools do not
            accept this line.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from subchain import HMM, Categorical
        >>> emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
        >>> model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "states.bed"
        ...     model.segments([0, 0, 0, 1, 1, 1]).to_bed(path, chrom="chr11", step=200, colours=False)
        ...     print(path.read_text().expandtabs(8))
        chr11   0       600     0
        chr11   600     1200    1
        <BLANKLINE>
        """
        bed.write(self, path, chrom, step, offset, colours, track)


def find_segments(
    question: Question, decoding: str, state_names: Sequence[str], occupancy: NDArray[np.float64]
) -> Segments:
    """Return the segments of all sequences, in the order of the data; `occupancy` (K,) decides the colours.

    Impossible sequences among others have no segments, with a warning.
    """
    try:
        return _segments(question, decoding, state_names, occupancy)
    except ImpossibleSequenceError as error:
        part = possible_part(question, error)
    found = _segments(part.question, decoding, state_names, occupancy)
    return dataclasses.replace(
        found, sequence=part.sequences[found.sequence], sequence_names=question.data.names,
        n_sequences=question.data.n_sequences,
    )  # fmt: skip


def _segments(
    question: Question, decoding: str, state_names: Sequence[str], occupancy: NDArray[np.float64]
) -> Segments:
    data = question.data
    smallest = np.empty(data.n_observations, dtype=np.min_scalar_type(question.n_states - 1))
    states = decode_states(question, decoding, smallest)
    begins = _begins(states, data.offsets)
    ends = np.append(begins[1:], len(states))
    sequence = np.searchsorted(data.offsets, begins, side="right") - 1
    sums = np.add.reduceat(of_states(question, states), begins, dtype=np.float64)
    return Segments(
        sequence, begins - data.offsets[sequence], ends - data.offsets[sequence], states[begins].astype(np.int64),
        np.minimum(sums / (ends - begins), 1.0), data.names, tuple(state_names), data.n_sequences,
        tuple(shaded(rank) for rank in ranks(occupancy)),
    )  # fmt: skip


def _begins(states: NDArray[Any], offsets: Index) -> Index:
    """Return the positions at which a segment begins: the state changes, or a sequence begins.

    Examples
    --------
    >>> _begins(np.array([3, 3, 0, 0, 0, 3]), np.array([0, 0, 4, 6]))
    array([0, 2, 4, 5])
    """
    is_begin = np.empty(len(states), dtype=np.bool_)
    is_begin[0] = True
    np.not_equal(states[1:], states[:-1], out=is_begin[1:])
    is_begin[offsets[:-1][np.diff(offsets) > 0]] = True
    return np.flatnonzero(is_begin)
