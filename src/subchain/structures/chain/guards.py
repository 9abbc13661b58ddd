"""Guards: what a subchain's neighbours said when they were last visited (Wang & Blunsom 2015).

For every subchain of a grid two vectors are kept, about its first and about its last position. A subchain that is
visited reads its neighbours' and writes its own. "messages" keeps what the neighbour itself says, the filtered marginal
of its last position and the backward message of its first times its likelihood; "marginals" keeps smoothed marginals,
as published, which contain an echo of what the subchain said before. A neighbour that was never visited says nothing.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from subchain.core.files import replacing, reserve
from subchain.core.locks import lock
from subchain.core.parts import Memory
from subchain.core.ranges import Range, stored, stored_number
from subchain.data.mapped import MappedFile, intact
from subchain.engines.subchains import Grid, Minibatch, MinibatchRun, Subchains
from subchain.engines.surrogate import Surrogate
from subchain.errors import FileFormatError, InputError, unknown_name
from subchain.propagation.guard_messages import fill_silent, gather_guards, write_guards
from subchain.structures.chain.boundaries import Boundary, OpenBoundary
from subchain.transitions.incremental import IncrementalChain

if TYPE_CHECKING:
    from subchain.structures.chain.structure import Chains

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Store = NDArray[np.float32]

STORES = ("messages", "marginals")
KIND, HEADER, NOTE_HEADER = "subchain guards", 4096, 64
#: Bytes before the contents of a note: how many guards it is about, and its checksum.
NOTE = 16
STORED = Range("float32", least=0.0)


#: Guards that change together when states do.
BLOCK = 1 << 16


class Guards(Boundary):
    """Subchains see what their neighbours said last; costs 8 K bytes for each subchain of the grid.

    Parameters
    ----------
    store : "messages" or "marginals"
        What is kept. Messages contain no echo, and are better for short subchains; marginals are as published.
    storage : path, optional
        A file to keep them in where memory is short; its space on disk is reserved at the beginning. It belongs to one
        fit, whose restarts use it one after the other.
    """

    def __init__(self, store: str = "messages", storage: str | os.PathLike[str] | None = None) -> None:
        self.store = store
        self.storage = storage

    def check(self) -> None:
        if not isinstance(self.store, str) or self.store not in STORES:
            raise unknown_name("store of Guards", self.store, STORES)

    def held_bytes(self, n_subchains: int, n_states: int) -> int:
        return 2 * 4 * n_subchains * n_states if self.storage is None else 0

    def open(self, subchains: Subchains, n_states: int, fingerprint: str) -> OpenBoundary:
        if not isinstance(subchains, Grid):
            raise InputError("Guards belong to the subchains of a grid; use starts='grid', or another boundary.")
        if self.storage is None:
            table = np.empty((subchains.size, 2, n_states), dtype=np.float32)
            table[:] = 0.0  # unlike np.zeros this lets the system use large pages
            return OpenGuards(self.store, table)
        identity = {"data": fingerprint, "states": n_states, "length": subchains.length, "store": self.store}
        return StoredGuards(self.store, Path(self.storage), (subchains.size, 2, n_states), identity)


class OpenGuards(OpenBoundary):
    """Guards at work, `table` (subchains, 2, K): what is known of their first positions, and of their last ones.

    Neighbours stand side by side: a subchain finds all that it reads and writes in one place.
    """

    def __init__(self, store: str, table: Store) -> None:
        self.store = store
        self.rows = table.reshape(len(table), 2 * table.shape[2])
        self.firsts, self.lasts = table[:, 0], table[:, 1]

    def enter(
        self, chains: Chains, surrogate: Surrogate, batch: Minibatch, chain: IncrementalChain
    ) -> tuple[Array, Array]:
        moves = surrogate.transition
        before, after = np.empty((2, surrogate.n_states, batch.size))
        gather_guards(self.rows, batch.pieces, batch.is_first, batch.is_last, before, after)
        start, stop = moves.apply(before), moves.apply_transposed(after)
        fill_silent(before, after, batch.is_first, batch.is_last, surrogate.initial, chain.stationary(), start, stop)
        return start, stop

    def leave(self, batch: Minibatch, run: MinibatchRun) -> None:
        ends, n_states = run.ends, self.firsts.shape[1]
        marginals = self.store == "marginals"
        first = ends.first_marginal if marginals else ends.first_message
        last = ends.last_marginal if marginals else ends.last_message
        for at, messages in ((0, first), (n_states, last)):
            write_guards(self.rows, at, batch.pieces, np.ascontiguousarray(messages), 0)

    def fold(self, into: int, gone: int) -> None:
        """Marginals of both states add up; messages from what follows say the same of both, or nothing of one."""
        join = np.add if self.store == "marginals" else np.maximum
        for first in range(0, len(self.firsts), BLOCK):
            pieces = np.arange(first, min(first + BLOCK, len(self.firsts)))
            self._note(pieces)
            block = slice(first, first + BLOCK)
            self.firsts[block, into] = join(self.firsts[block, into], self.firsts[block, gone])
            self.lasts[block, into] += self.lasts[block, gone]
            self.firsts[block, gone] = self.lasts[block, gone] = 0.0

    def _note(self, pieces: NDArray[np.int64]) -> None:
        """Guards of these pieces are about to change."""

    def memory(self) -> Memory:
        return {"guards.firsts": self.firsts.copy(), "guards.lasts": self.lasts.copy()}

    def restore(self, memory: Memory) -> None:
        self.firsts[:] = stored(memory, "guards.firsts", STORED, self.firsts.shape)
        self.lasts[:] = stored(memory, "guards.lasts", STORED, self.lasts.shape)


class StoredGuards(OpenGuards):
    """Guards in a file, which belongs to one run.

    What a minibatch overwrites is noted in a second file from one checkpoint to the next, so that a run that was killed
    can be taken back to its last one. Both files and the checkpoint carry the name of the run and count its
    checkpoints; what does not fit together is refused. The last eight bytes of the header of the guards say how many
    bytes of notes there must be.
    """

    def __init__(self, store: str, path: Path, shape: tuple[int, int, int], identity: dict[str, Any]) -> None:
        self.path = path
        self.undo_path = path.with_name(path.name + ".undo")
        self.identity = {"kind": KIND} | identity
        self.run, self.generation = "", 0
        try:
            if path.exists():
                self.run = self._check(shape)
                reserve(path)
            else:
                path.parent.stat()  # the folder must exist
                with replacing(path) as temporary:
                    os.truncate(temporary, _size(shape))
                    reserve(temporary)
                    self._write_header(temporary)
            content = np.memmap(path, mode="r+", shape=(_size(shape),))
            super().__init__(store, content[HEADER:].view(np.float32).reshape(shape))
            self._promised = content[HEADER - 8 : HEADER].view(np.int64)
            self._file = MappedFile.of(content)
            self._undo: BinaryIO = os.fdopen(os.open(self.undo_path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        except OSError as error:
            size = 4 * int(np.prod(shape)) / 1e6
            raise InputError(
                f"{size:.0f} MB of guards cannot be kept in {path}: {error.strerror or error}; choose another place."
            ) from None
        if not lock(self._undo):
            raise InputError(f"{path} is in use by another run; choose another file for Guards(storage=...).")
        #: Before the first checkpoint there is nothing to be taken back to.
        self._is_noting = False

    def _write_header(self, path: Path) -> None:
        with open(path, "r+b") as file:
            file.write(json.dumps(self.identity | {"run": self.run}).encode().ljust(HEADER, b"\0"))

    def _check(self, shape: tuple[int, int, int]) -> str:
        """Refuse a file of another kind, of other data or of another size; the name of the run that it belongs to."""
        with open(self.path, "rb") as file:
            header = file.read(HEADER).partition(b"\0")[0]
        try:
            found = json.loads(header)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise InputError(f"{self.path} exists and holds no guards; choose another file for Guards(storage=...).")
        for key, value in self.identity.items():
            if found.get(key) != value:
                raise InputError(
                    f"{self.path} holds the guards of another run: its {key} was {found.get(key)!r}, now it is "
                    f"{value!r}. Choose another file, or delete this one."
                )
        if self.path.stat().st_size != _size(shape):
            raise FileFormatError(
                f"{self.path} has {self.path.stat().st_size} bytes, but its guards take {_size(shape)}: the file is "
                "truncated or damaged. Delete it, and begin again without resume."
            )
        return str(found.get("run", ""))

    # ---- a run -------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        with intact(self._file):
            self.firsts[:], self.lasts[:] = 0.0, 0.0
            self.run, self.generation, self._is_noting = secrets.token_hex(8), 0, False
            self._write_header(self.path)
            self._start_notes()

    def leave(self, batch: Minibatch, run: MinibatchRun) -> None:
        with intact(self._file):  # also what `enter` has read
            self._note(batch.pieces)
            super().leave(batch, run)

    def fold(self, into: int, gone: int) -> None:
        with intact(self._file):
            super().fold(into, gone)

    def _note(self, pieces: NDArray[np.int64]) -> None:
        if self._is_noting:
            note = b"".join(part.tobytes() for part in (pieces, self.firsts[pieces], self.lasts[pieces]))
            try:
                self._undo.write(np.array([len(pieces), zlib.crc32(note)]).tobytes() + note)
                self._undo.flush()
            except OSError as error:
                raise InputError(
                    f"what guards were before cannot be noted in {self.undo_path}: {error.strerror}. Make room, and "
                    "resume from the checkpoint."
                ) from None
            self._promised[0] = self._undo.tell() - NOTE_HEADER

    def memory(self) -> Memory:
        """The name of the run, and the number of the checkpoint that is being written."""
        name = np.frombuffer(self.run.encode(), dtype=np.uint8)
        return {"guards.run": name, "guards.generation": np.array(self.generation + 1)}

    def checkpointed(self) -> None:
        if self._undo.closed:  # the run has ended; `restore` sees that what was noted came before the checkpoint
            return
        self.generation += 1
        self._is_noting = True
        self._start_notes()

    def release(self) -> None:
        with contextlib.suppress(OSError):  # notes on a full disk: the run has said so, and does not need them any more
            self._undo.close()

    def __del__(self) -> None:
        undo = getattr(self, "_undo", None)
        if undo is not None:
            undo.close()

    def _start_notes(self) -> None:
        """Begin to note what is overwritten after the present checkpoint."""
        self._promised[0] = 0  # what stands in the file from now on is not to be taken back
        self._undo.seek(0)
        self._undo.write(f"{self.run} {self.generation}".encode().ljust(NOTE_HEADER))
        self._undo.flush()
        self._undo.truncate()

    def restore(self, memory: Memory) -> None:
        """Take back what happened after the checkpoint, the latest first."""
        if "guards.run" not in memory:
            raise FileFormatError("it was written with another Guards(storage=...); resume as the run was begun")
        run = stored(memory, "guards.run", Range("uint8"), (None,)).tobytes().decode(errors="replace")
        generation = stored_number(memory, "guards.generation")
        self._undo.seek(0)
        noted_run, _, noted_generation = self._undo.read(NOTE_HEADER).decode(errors="replace").strip().partition(" ")
        noted = int(noted_generation) if noted_generation.isdecimal() else -2
        if not (run and run == self.run == noted_run and noted in (generation, generation - 1)):
            raise InputError(
                f"the guards in {self.path} are not those of the checkpoint: the file was deleted, or used by another "
                "run since. Begin again without resume."
            )
        if noted == generation:  # else the checkpoint was written after all that was noted
            self._take_back()
        with intact(self._file):
            self._check_contents()
        self.generation, self._is_noting = generation, True
        self._start_notes()

    def _check_contents(self) -> None:
        for first in range(0, len(self.firsts), BLOCK):
            for table in (self.firsts, self.lasts):
                fault = STORED.fault(table[first : first + BLOCK], {})
                if fault is not None:
                    raise FileFormatError(f"{self.path} is damaged: it {fault}. Begin again without resume.")

    def _has(self, pieces: Index) -> bool:
        return not len(pieces) or bool(pieces.min() >= 0 and pieces.max() < len(self.firsts))

    def _take_back(self) -> None:
        noted, n_states = self._undo.read(), self.firsts.shape[1]
        entries, at = [], 0
        while at < int(self._promised[0]) and at + NOTE <= len(noted):  # later ones are of guards not touched yet
            count, checksum = np.frombuffer(noted, np.int64, 2, at).tolist()
            size = (8 + 8 * n_states) * count
            note = noted[at + NOTE : at + NOTE + max(size, 0)]
            if len(note) != size or zlib.crc32(note) != checksum or not self._has(np.frombuffer(note, np.int64, count)):
                break
            entries.append((at + NOTE, count))
            at += NOTE + len(note)
        if at < int(self._promised[0]):
            raise FileFormatError(
                f"{self.undo_path} is damaged or truncated, so that the guards cannot be taken back to the checkpoint. "
                "Begin again without resume."
            )
        for at, count in reversed(entries):
            pieces = np.frombuffer(noted, np.int64, count, at)
            old = np.frombuffer(noted, np.float32, 2 * count * n_states, at + 8 * count).reshape(2, count, n_states)
            # a piece that was drawn twice was noted twice with the same contents
            self.firsts[pieces], self.lasts[pieces] = old


def _size(shape: tuple[int, int, int]) -> int:
    """Return the bytes of a file of guards."""
    return HEADER + 4 * math.prod(shape)
