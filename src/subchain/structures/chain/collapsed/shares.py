"""What clusters have put into the counts: kept so that it can be taken out again, in memory or in files.

A cluster's marginals determine what it has put into the emissions' sums, but for families whose sums depend on more;
its expected transitions do not follow from marginals, so they are kept too.
"""

from __future__ import annotations

import contextlib
import copy
import os
import secrets
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subchain.core.files import reserve
from subchain.core.locks import PREFIX, create_locked, leftovers
from subchain.core.parts import Memory
from subchain.core.ranges import COUNTS, FINITE, SUM_TOLERANCE, stored, stored_number
from subchain.core.records import build_record
from subchain.data.legal_states import LegalStates, no_restriction, spread_out
from subchain.data.mapped import MappedFile, intact
from subchain.errors import FileFormatError, InputError
from subchain.propagation.collapsed.dense_pieces import DenseMarginals
from subchain.propagation.collapsed.listed_counts import forget_impossible, move_blocks, sum_moves
from subchain.propagation.collapsed.listed_pieces import ListedMarginals, Lists
from subchain.propagation.collapsed.pieces import Legal
from subchain.structures.chain.collapsed.clusters import Clusters

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: Bits of the number of a copy that name the run, and those that count its copies, the last six digits of its name.
RUN_BITS, COPY_BITS = 39, 24
#: Smallest factor of evidence, where it multiplies probabilities of symbols; elsewhere its logarithms are added.
LEAST_FACTOR = 1e-300


def legal_lists(legal: LegalStates | None) -> tuple[Legal, Array]:
    """Legal states for kernels, and the largest log weight that evidence gives at each position, (N,) or empty."""
    if legal is None:
        return Legal(*no_restriction(), np.empty(0), np.empty(0)), np.empty(0)
    logs = legal.log_weights
    if logs is None or not len(logs):
        return Legal(legal.offsets, legal.states, np.empty(0), np.empty(0)), np.empty(0)
    largest = np.maximum.reduceat(logs, legal.offsets[:-1])
    relative = logs - np.repeat(largest, np.diff(legal.offsets))
    return Legal(legal.offsets, legal.states, np.maximum(np.exp(relative), LEAST_FACTOR), relative), largest


class Shares:
    """What the clusters have put in: marginals of all positions, and expected transitions of each cluster.

    Parameters
    ----------
    legal : legal states, or None if every state is legal everywhere
    n_states : number of states
    clusters : who has shares
    folder : folder of the files that hold the tables, under unique names, or None for memory

    Attributes
    ----------
    legal : the legal states for kernels; empty arrays if every state is legal
    log_scale : what evidence adds to the log normalisers of all clusters beside the factors in `legal`
    marginals : (entries,) one number for each legal state of each position, or for all states of each
    pairs : (S, K, K) expected transitions of each cluster, see `Clusters.share_of`
    moves, blocks : (entries,), (N + 1,) the same as lists and where each position's begin, see `listed_pieces`; where
        lists would be longer than tables, `moves` is empty. With lists, `pairs` has a single, empty row.
    """

    def __init__(self, legal: LegalStates | None, n_states: int, clusters: Clusters, folder: Any) -> None:
        self.n_states = n_states
        self.log_weights = None if legal is None else legal.log_weights
        self.legal, largest = legal_lists(legal)
        counted = np.repeat(clusters.weights_of(clusters.sequences), clusters.lengths)
        self.log_scale = float(largest @ counted) if len(largest) else 0.0
        entries = int(clusters.lengths.sum()) * n_states if legal is None else legal.n_entries
        self.blocks = np.empty(0, dtype=np.int64)
        n_pairs, n_moves = clusters.n_shares * n_states**2, 0
        if legal is not None:
            self.blocks = move_blocks(clusters.starts, clusters.lengths, legal.offsets)
            if self.blocks[-1] <= n_pairs:
                n_pairs, n_moves = n_states**2, int(self.blocks[-1])
        self._sizes = entries, n_pairs, n_moves
        self.path = None if folder is None else self._create(Path(folder))
        self._copies: list[int] = []
        self._n_copies = 0
        self._adopt(self._allocate(""))
        #: Where new shares are written: here, or elsewhere while the old ones are still needed.
        self.new = self

    @property
    def is_compressed(self) -> bool:
        return len(self.legal.offsets) > 0

    @property
    def kernel(self) -> DenseMarginals | ListedMarginals:
        """The shares for kernels, which write new ones."""
        new = self.new
        if not self.is_compressed:
            return DenseMarginals(self.rows, self.pairs, new.rows, new.pairs)
        old = Lists(self.marginals, self.pairs, self.moves)
        return ListedMarginals(self.legal, self.blocks, old, Lists(new.marginals, new.pairs, new.moves))

    @property
    def nbytes(self) -> int:
        """Bytes of both tables."""
        return 8 * sum(self._sizes)

    def _create(self, folder: Path) -> Path:
        """Create the file of the tables, which is locked as long as this object lives; remove those of killed runs."""
        with self._naming(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for left in leftovers(folder, f"{PREFIX}*.shares"):
                run = left.stem.removeprefix(PREFIX)
                for path in (left.with_name(left.name + ".new"), *folder.glob(f"{run}??????.partial"), left):
                    path.unlink(missing_ok=True)
            self._run = secrets.randbits(RUN_BITS)
            path, held = create_locked(lambda: self._file_of(self._run, folder))
            weakref.finalize(self, held.close)
            return path

    @staticmethod
    def _file_of(run: int, folder: Path) -> Path:
        return folder / f"{PREFIX}{run:010x}.shares"

    @contextlib.contextmanager
    def _naming(self, folder: Path) -> Iterator[None]:
        """Replace errors of the system by an `InputError` that names the folder."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"CVI: storage={str(folder)!r} cannot hold {self.nbytes / 1e6:.0f} MB of shares: "
                f"{error.strerror}; choose a folder with room in which files can be made."
            ) from None

    def _allocate(self, suffix: str) -> Array:
        if self.path is None:
            return np.zeros(sum(self._sizes))
        path = self.path.with_name(self.path.name + suffix)
        with self._naming(path.parent):
            try:
                shares = np.memmap(path, dtype=np.float64, mode="w+", shape=(sum(self._sizes),))
                reserve(path)
                return shares
            except OSError:
                path.unlink(missing_ok=True)
                raise

    def _adopt(self, flat: Array) -> None:
        marginals, pairs, self.moves = np.split(flat, np.cumsum(self._sizes[:2]))
        self.marginals, self.pairs = marginals, pairs.reshape(-1, self.n_states, self.n_states)
        self._flat = flat
        #: The file of the tables, None for those in memory.
        self.file = MappedFile.of(flat)

    @contextlib.contextmanager
    def writing(self, in_place: bool) -> Iterator[None]:
        """While this is open, new shares are written over the old ones, or take their place when it is closed."""
        if in_place:
            yield
            return
        self.new = copy.copy(self)
        self.new._adopt(self._allocate(".new"))
        try:
            yield
            with intact(self.file, self.new.file):
                self._flat[:] = self.new._flat
        finally:
            self.new = self
            if self.path is not None:
                self.path.with_name(self.path.name + ".new").unlink(missing_ok=True)

    def all_pairs(self) -> Array:
        """Expected transitions inside all clusters together."""
        return np.asarray(self.pairs.sum(axis=0)) + self.listed_pairs(0, len(self.blocks) - 1)

    def forget_impossible(self, possible: NDArray[np.bool_]) -> None:
        """Set expected transitions inside clusters to zero but for the possible ones."""
        self.pairs *= possible
        if len(self.moves):
            forget_impossible(self.legal, self.blocks, self.moves, possible)

    def listed_pairs(self, first: int, last: int) -> Array:
        """Expected transitions between positions, those between clusters left out, where they are kept as lists."""
        total = np.zeros((self.n_states, self.n_states))
        if len(self.moves):
            sum_moves(first, last, self.legal, self.blocks, self.moves, self.blocks[first], total)
        return total

    # ---- positions ---------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> Array:
        """Marginals as a table (N, K), where every state is legal."""
        return self.marginals.reshape(-1, self.n_states)

    def table(self, first: int, last: int) -> Array:
        """Marginals of neighbouring positions, (K, n)."""
        if self.is_compressed:
            entries = self.marginals[self.legal.offsets[first] : self.legal.offsets[last]]
        else:
            entries = self.marginals[first * self.n_states : last * self.n_states]
        return spread_out(entries, first, last, self.legal.offsets, self.legal.states, self.n_states)

    def read(self, positions: Index) -> Array:
        """Marginals of any positions, (K, n)."""
        if not self.is_compressed:
            return np.ascontiguousarray(self.rows[positions].T)
        table = np.zeros((self.n_states, len(positions)))
        entries, columns = self._entries(positions)
        table[self.legal.states[entries], columns] = self.marginals[entries]
        return table

    def _entries(self, positions: Index) -> tuple[Index, Index]:
        """Entries of positions, and the column that each belongs to."""
        counts = self.legal.offsets[positions + 1] - self.legal.offsets[positions]
        columns = np.repeat(np.arange(len(positions)), counts)
        within = np.arange(len(columns)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.legal.offsets[positions][columns] + within, columns

    # ---- files -------------------------------------------------------------------------------------------------------

    def memory(self) -> Memory:
        """What a checkpoint keeps: the tables, or the number in the name of the copy that was just made of them."""
        if self.path is None:
            return {"shares": np.array(self._flat)}
        self._n_copies = (self._n_copies + 1) % (1 << COPY_BITS)
        number = self._run << COPY_BITS | self._n_copies
        partial = self._copy(number).with_suffix(".partial")
        with intact(self.file):
            np.asarray(self._flat).tofile(partial)
        os.replace(partial, self._copy(number))
        self._copies.append(number)
        return {"copy": np.array(number)}

    @contextlib.contextmanager
    def trying(self) -> Iterator[None]:
        """Delete the copies that are made while this context is open when it ends."""
        known = list(self._copies)
        try:
            yield
        finally:
            for number in set(self._copies) - set(known):
                self._copy(number).unlink(missing_ok=True)
            self._copies = known

    def checkpointed(self) -> None:
        """A checkpoint has been written: older copies are not needed any more."""
        for number in self._copies[:-1]:
            self._copy(number).unlink(missing_ok=True)
        self._copies = self._copies[-1:]

    def restore(self, memory: Memory) -> None:
        """The inverse of `memory`."""
        if ("copy" in memory) != (self.path is not None):
            raise InputError("the checkpoint was written with another CVI(storage=...); resume as the run was begun.")
        found = memory.get("shares")
        if self.path is not None:
            number = stored_number(memory, "copy")
            if not self._copy(number).exists():
                raise InputError(
                    f"{self._copy(number)} is missing, which the checkpoint needs; resume with the folder as it was."
                )
            found = np.fromfile(self._copy(number))
            if number not in self._copies:
                self._copies = [number]
                self._remove_others(number)
        known = {"shares": np.empty(0) if found is None else found}
        self._flat[:] = stored(known, "shares", COUNTS, self._flat.shape)
        starts = self.legal.offsets[:-1] if self.is_compressed else np.arange(0, len(self.marginals), self.n_states)
        sums = np.add.reduceat(self.marginals, starts) if len(starts) else np.ones(0)
        if (np.abs(sums - 1.0) > SUM_TOLERANCE).any():
            raise FileFormatError("shares holds marginals of a position that do not sum to 1")

    def _remove_others(self, number: int) -> None:
        """Remove copies that the run of this one made for a checkpoint which it did not live to write."""
        assert self.path is not None
        folder, run = self.path.parent, number >> COPY_BITS
        if not self._file_of(run, folder).exists():  # else the run is alive
            for path in folder.glob(f"{run:010x}??????.copy"):
                if path != self._copy(number):
                    path.unlink()

    def _copy(self, number: int) -> Path:
        assert self.path is not None
        return self.path.with_name(f"{number:016x}.copy")


class OwnSums:
    """What each cluster has put into a family's sums, for families whose sums depend on more than marginals.

    Parameters
    ----------
    like : empty sums
    size : number of clusters
    """

    def __init__(self, like: Any, size: int) -> None:
        self.schema = like.schema()
        self.arrays = {name: np.repeat(array[None], size, axis=0) for name, array in like.arrays().items()}

    def of(self, cluster: int) -> Any:
        return build_record(self.schema, {name: array[cluster].copy() for name, array in self.arrays.items()})

    def put(self, cluster: int, sums: Any) -> None:
        for name, array in sums.arrays().items():
            self.arrays[name][cluster] = array

    def total(self) -> Any:
        """The sums of all clusters."""
        total = self.of(0)
        for cluster in range(1, len(next(iter(self.arrays.values())))):
            total.absorb(self.of(cluster))
        return total

    def memory(self) -> Memory:
        return {f"own.{name}": array.copy() for name, array in self.arrays.items()}

    def restore(self, memory: Memory) -> None:
        for name, array in self.arrays.items():
            array[:] = stored(memory, f"own.{name}", FINITE, array.shape)
