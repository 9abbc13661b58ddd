"""Guards: what a subchain's neighbours said when they were last visited (Wang & Blunsom 2015).

For every subchain of a grid two vectors are kept, about its first and about its last position. A subchain that is
visited reads its neighbours' and writes its own. "messages" keeps what the neighbour itself says, the filtered marginal
of its last position and the backward message of its first times its likelihood; "marginals" keeps smoothed marginals,
as published, which contain an echo of what the subchain said before. A neighbour that was never visited says nothing.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from subchain.core.files import reserve
from subchain.core.parts import Memory
from subchain.engines.subchains import Grid, Minibatch, MinibatchRun, Subchains
from subchain.engines.surrogate import Surrogate
from subchain.errors import InputError, unknown_name
from subchain.propagation.guards import fill_silent, gather_guards, write_guards
from subchain.structures.chain.boundaries import Boundary, OpenBoundary
from subchain.transitions.incremental import IncrementalChain

if TYPE_CHECKING:
    from subchain.structures.chain.structure import Chains

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Store = NDArray[np.float32]

STORES = ("messages", "marginals")
KIND, HEADER, NOTE_HEADER = "subchain guards", 4096, 64


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
        if self.store not in STORES:
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
        self.firsts, self.lasts = table[:, 0], table[:, 1]

    def enter(
        self, chains: Chains, surrogate: Surrogate, batch: Minibatch, chain: IncrementalChain
    ) -> tuple[Array, Array]:
        moves = surrogate.transition
        before, after = np.empty((2, surrogate.n_states, batch.size))
        gather_guards(self.lasts, self.firsts, batch.pieces, batch.is_first, batch.is_last, before, after)
        start, stop = moves.apply(before), moves.apply_transposed(after)
        fill_silent(before, after, batch.is_first, batch.is_last, surrogate.initial, chain.stationary(), start, stop)
        return start, stop

    def leave(self, batch: Minibatch, run: MinibatchRun) -> None:
        ends = run.ends
        marginals = self.store == "marginals"
        write_guards(self.firsts, batch.pieces, ends.first_marginal if marginals else ends.first_message)
        write_guards(self.lasts, batch.pieces, ends.last_marginal if marginals else ends.last_message)

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
        self.firsts[:], self.lasts[:] = memory["guards.firsts"], memory["guards.lasts"]


class StoredGuards(OpenGuards):
    """Guards in a file, which belongs to one run.

    What a minibatch overwrites is noted in a second file from one checkpoint to the next, so that a run that was killed
    can be taken back to its last one. Both files and the checkpoint carry the name of the run and count its
    checkpoints; what does not fit together is refused.
    """

    def __init__(self, store: str, path: Path, shape: tuple[int, int, int], identity: dict[str, Any]) -> None:
        self.path = path
        self.undo_path = path.with_name(path.name + ".undo")
        self.identity = {"kind": KIND} | identity
        self.run, self.generation = "", 0
        try:
            if path.exists():
                self.run = self._check()
                reserve(path)
            else:
                self._create(shape)
            super().__init__(store, np.memmap(path, dtype=np.float32, mode="r+", offset=HEADER, shape=shape))
            self._undo: BinaryIO = open(self.undo_path, "a+b")  # noqa: SIM115
        except OSError as error:
            size = 4 * int(np.prod(shape)) / 1e6
            raise InputError(
                f"{size:.0f} MB of guards cannot be kept in {path}: {error.strerror or error}; choose another place."
            ) from None
        _lock(self._undo, path)
        #: Before the first checkpoint there is nothing to be taken back to.
        self._is_noting = False

    def _create(self, shape: tuple[int, int, int]) -> None:
        with open(self.path, "xb") as file:
            file.truncate(HEADER + 4 * int(np.prod(shape)))
        try:
            reserve(self.path)
            self._write_header()
        except OSError:
            self.path.unlink()
            raise

    def _write_header(self) -> None:
        with open(self.path, "r+b") as file:
            file.write(json.dumps(self.identity | {"run": self.run}).encode().ljust(HEADER, b"\0"))

    def _check(self) -> str:
        """Refuse a file of another kind or of other data; the name of the run that it belongs to."""
        with open(self.path, "rb") as file:
            header = file.read(HEADER).rstrip(b"\0")
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
        return str(found.get("run", ""))

    # ---- a run -------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.firsts[:], self.lasts[:] = 0.0, 0.0
        self.run, self.generation, self._is_noting = secrets.token_hex(8), 0, False
        self._write_header()
        self._start_notes()

    def leave(self, batch: Minibatch, run: MinibatchRun) -> None:
        self._note(batch.pieces)
        super().leave(batch, run)

    def _note(self, pieces: NDArray[np.int64]) -> None:
        if self._is_noting:
            for part in (np.array([len(pieces)]), pieces, self.firsts[pieces], self.lasts[pieces]):
                self._undo.write(part.tobytes())
            self._undo.flush()

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
        self._undo.close()

    def __del__(self) -> None:
        undo = getattr(self, "_undo", None)
        if undo is not None:
            undo.close()

    def _start_notes(self) -> None:
        """Begin to note what is overwritten after the present checkpoint."""
        self._undo.seek(0)
        self._undo.truncate()
        self._undo.write(f"{self.run} {self.generation}".encode().ljust(NOTE_HEADER))
        self._undo.flush()

    def restore(self, memory: Memory) -> None:
        """Take back what happened after the checkpoint, the latest first."""
        run = bytes(np.asarray(memory.get("guards.run", []), dtype=np.uint8)).decode()
        generation = int(memory.get("guards.generation", -1))
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
        self.generation, self._is_noting = generation, True
        self._start_notes()

    def _take_back(self) -> None:
        noted, n_states = self._undo.read(), self.firsts.shape[1]
        entries, at = [], 0
        while at + 8 <= len(noted):
            count = int(np.frombuffer(noted, np.int64, 1, at)[0])
            size = 8 * count + 2 * 4 * count * n_states
            if at + 8 + size > len(noted):
                break  # killed while writing: the guards had not been touched
            entries.append((at + 8, count))
            at += 8 + size
        for at, count in reversed(entries):
            pieces = np.frombuffer(noted, np.int64, count, at)
            old = np.frombuffer(noted, np.float32, 2 * count * n_states, at + 8 * count).reshape(2, count, n_states)
            # a piece that was drawn twice was noted twice with the same contents
            self.firsts[pieces], self.lasts[pieces] = old


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep others from using the same file as long as this one is open, where the system can do that."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(f"{path} is in use by another run; choose another file for Guards(storage=...).") from None
