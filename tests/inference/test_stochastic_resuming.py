"""Stochastic runs that are interrupted and resumed, with guards in memory and in files."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stochastic_examples import BOUNDARIES, text, words

from subchain import HMM, SCVI, Guards, HoldOut
from subchain.errors import FileFormatError, InputError
from subchain.inference.run.checkpoint import Checkpoint
from subchain.inference.stochastic.updates import Updates
from subchain.structures.chain.fused_updates import FusedUpdates
from subchain.structures.chain.guards import StoredGuards
from subchain.structures.chain.validation import HeldOutPositions


@pytest.fixture(autouse=True)
def interruptions_are_heard() -> Iterator[None]:
    """Processes that were started in the background do not hear them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class TestInterruption:
    @pytest.mark.parametrize("boundary", BOUNDARIES)
    @pytest.mark.parametrize("kill_at", [1, 2, 4])
    def test_a_run_that_is_killed_ends_in_the_same_bits(
        self, boundary: str, kill_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._kill_and_resume(BOUNDARIES[boundary], kill_at, tmp_path, monkeypatch)

    @pytest.mark.parametrize("kill_at", [1, 2, 4])
    def test_so_does_one_with_guards_in_a_file(
        self, kill_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._kill_and_resume(Guards(storage=tmp_path / "guards"), kill_at, tmp_path, monkeypatch)

    def _kill_and_resume(self, boundary: Any, kill_at: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        class Killed(Exception):
            pass

        inference = SCVI(
            length=4, batch=30, boundary=boundary, max_updates=50, report_every=10, adapt=True, average=True
        )
        whole = words(inference).fit(text())
        saved, updates = Checkpoint.save, Updates.update
        monkeypatch.setattr(Checkpoint, "save", lambda self, journey, force=False: saved(self, journey, force=True))

        def die(self: Any) -> None:
            updates(self)
            if self.results.update == 10 * kill_at + 7:
                raise Killed

        monkeypatch.setattr(Updates, "update", die)
        with pytest.raises(Killed):
            words(inference).fit(text(), checkpoint=folder / "c")
        monkeypatch.setattr(Updates, "update", updates)
        resumed = words(inference).fit(text(), checkpoint=folder / "c", resume=True)
        assert np.array_equal(resumed.transition_, whole.transition_)
        assert np.array_equal(resumed.emission_.probabilities, whole.emission_.probabilities)  # type: ignore[attr-defined]
        assert resumed.trace_.objective == whole.trace_.objective

    def test_ctrl_c_ends_between_two_updates(self, tmp_path: Path) -> None:
        words(SCVI(length=4, batch=30, boundary=Guards(), max_updates=1)).fit(text())  # compiles
        inference = SCVI(length=4, batch=30, boundary=Guards(), max_updates=10**9, time_limit=60.0, report_every=20)
        timer = threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.warns(UserWarning, match="interrupted"):
            fitted = words(inference).fit(text(), checkpoint=tmp_path / "c")
        assert fitted.status_ == "interrupted"
        assert fitted.point_.not_finite() is None
        assert fitted.statistics_.pairs.sum() == pytest.approx(1999, rel=0.5)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class TestGuardsInAFile:
    def test_they_give_what_guards_in_memory_give(self, tmp_path: Path) -> None:
        settings: dict[str, Any] = {"length": 4, "batch": 30, "max_updates": 30}
        memory = words(SCVI(boundary=Guards(), **settings)).fit(text())
        stored = words(SCVI(boundary=Guards(storage=tmp_path / "g"), **settings)).fit(text())
        again = words(SCVI(boundary=Guards(storage=tmp_path / "g"), **settings)).fit(text())
        assert np.array_equal(memory.transition_, stored.transition_)
        assert np.array_equal(memory.transition_, again.transition_)

    def test_another_run_s_file_is_refused(self, tmp_path: Path) -> None:
        guards = Guards(storage=tmp_path / "g")
        words(SCVI(length=4, boundary=guards, max_updates=2)).fit(text())
        with pytest.raises(InputError, match="another run: its data"):
            words(SCVI(length=4, boundary=guards, max_updates=2)).fit(text(1000))
        with pytest.raises(InputError, match="another run: its length"):
            words(SCVI(length=5, boundary=guards, max_updates=2)).fit(text())

    def test_a_file_that_holds_something_else_is_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "thesis.txt"
        path.write_text("precious")
        with pytest.raises(InputError, match="holds no guards"):
            words(SCVI(length=4, boundary=Guards(storage=path), max_updates=2)).fit(text())
        assert path.read_text() == "precious"


@pytest.mark.parametrize("at", [35, 39, 40, 41])
def test_a_run_that_was_interrupted_goes_on_in_the_same_bits(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inference = SCVI(length=4, batch=30, boundary=Guards(), max_updates=100, report_every=10, average=True)
    whole = words(inference).fit(text())
    monkeypatch.setattr(FusedUpdates, "_can_run", lambda self, batches: False)
    update = Updates.update

    def interrupt(self: Any) -> None:
        update(self)
        if self.results.update == at:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Updates, "update", interrupt)
    with pytest.warns(UserWarning, match="interrupted"):
        words(inference).fit(text(), checkpoint=tmp_path / "c")
    monkeypatch.setattr(Updates, "update", update)
    resumed = words(inference).fit(text(), checkpoint=tmp_path / "c", resume=True)
    np.testing.assert_allclose(resumed.transition_, whole.transition_, rtol=1e-12)
    assert len(resumed.trace_) == len(whole.trace_)


class TestLimitsOnResume:
    def fit(self, folder: Path, limit: int, average: bool = False, **settings: Any) -> HMM:
        inference = SCVI(length=4, batch=30, boundary=Guards(), max_updates=limit, report_every=10, average=average)
        return words(inference).fit(text(), checkpoint=folder / "c", **{"resume": False} | settings)

    @pytest.mark.parametrize("average", [False, True])
    def test_a_higher_limit_is_counted_in_updates(self, average: bool, tmp_path: Path) -> None:
        self.fit(tmp_path, 23, average)
        resumed = self.fit(tmp_path, 40, average, resume=True)
        assert resumed.trace_.measures["updates"] == [10, 20, 23, 30, 40]
        assert np.array_equal(resumed.transition_, self.fit(tmp_path, 40, average).transition_)

    def test_a_lower_limit_ends_at_once(self, tmp_path: Path) -> None:
        self.fit(tmp_path, 30)
        assert self.fit(tmp_path, 20, resume=True).trace_.measures["updates"] == [10, 20, 30]


def test_ctrl_c_while_scoring_goes_on_in_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inference = SCVI(length=4, batch=30, max_updates=50, report_every=10, average=True)
    whole = words(inference).fit(text(), validation=HoldOut(0.1))
    score, calls = HeldOutPositions.score, []

    def interrupt(self: Any, *given: Any) -> float:
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return score(self, *given)

    monkeypatch.setattr(HeldOutPositions, "score", interrupt)
    with pytest.warns(UserWarning, match="interrupted"):
        words(inference).fit(text(), validation=HoldOut(0.1), checkpoint=tmp_path / "c")
    resumed = words(inference).fit(text(), validation=HoldOut(0.1), checkpoint=tmp_path / "c", resume=True)
    assert np.array_equal(resumed.transition_, whole.transition_)
    assert resumed.trace_.measures["updates"] == [10, 20, 30, 40, 50]


class TestGuardsAndCheckpoints:
    def fit(self, folder: Path, **settings: Any) -> HMM:
        inference = SCVI(length=4, batch=30, boundary=Guards(storage=folder / "g"), max_updates=50, report_every=10)
        return words(inference).fit(text(), checkpoint=folder / "c", **{"resume": False} | settings)

    def killed(self, folder: Path, monkeypatch: pytest.MonkeyPatch, at: int = 27) -> None:
        class Killed(Exception):
            pass

        update, saved = Updates.update, Checkpoint.save

        def die(self: Any) -> None:
            update(self)
            if self.results.update == at:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(Updates, "update", die)
            patch.setattr(Checkpoint, "save", lambda self, journey, force=False: saved(self, journey, force=True))
            with pytest.raises(Killed):
                self.fit(folder)

    def test_a_file_that_was_deleted_or_used_since_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.killed(tmp_path, monkeypatch)
        (tmp_path / "g").unlink()
        with pytest.raises(InputError, match="not those of the checkpoint"):
            self.fit(tmp_path, resume=True)
        self.killed(tmp_path, monkeypatch)
        other = SCVI(length=4, batch=30, boundary=Guards(storage=tmp_path / "g"), max_updates=5)
        words(other, random_state=9).fit(text())
        with pytest.raises(InputError, match="not those of the checkpoint"):
            self.fit(tmp_path, resume=True)

    def test_a_truncated_file_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.killed(tmp_path, monkeypatch)
        os.truncate(tmp_path / "g", (tmp_path / "g").stat().st_size - 400)
        with pytest.raises(FileFormatError, match=r"g has \d+ bytes, but its guards take \d+: the file is truncated"):
            self.fit(tmp_path, resume=True)

    @pytest.mark.parametrize("value", [np.nan, -1.0, np.inf])
    def test_guards_out_of_range_are_refused(
        self, value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.killed(tmp_path, monkeypatch)
        header, guards = (content := (tmp_path / "g").read_bytes())[:4096], np.frombuffer(content[4096:], np.float32)
        (tmp_path / "g").write_bytes(header + np.full_like(guards, value).tobytes())  # the notes restore some of them
        with pytest.raises(FileFormatError, match=r"g is damaged: it holds .*\. Begin again"):
            self.fit(tmp_path, resume=True)

    @pytest.mark.parametrize("damage", ["cut", "flip", "count"])
    def test_damaged_notes_are_refused(self, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.killed(tmp_path, monkeypatch)
        content = bytearray((tmp_path / "g.undo").read_bytes())
        assert len(content) > 1000
        if damage == "cut":
            del content[len(content) // 2 :]
        elif damage == "flip":
            content[len(content) // 2] ^= 1
        else:
            content[64:72] = np.int64(-(1 << 40)).tobytes()
        (tmp_path / "g.undo").write_bytes(content)
        with pytest.raises(FileFormatError, match=r"g\.undo is damaged or truncated"):
            self.fit(tmp_path, resume=True)

    def test_a_note_that_was_not_finished_is_ignored(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = self.fit(tmp_path)
        self.killed(tmp_path, monkeypatch)
        with open(tmp_path / "g.undo", "ab") as file:
            file.write(np.array([30, 12345]).tobytes() + b"half a note")
        assert np.array_equal(self.fit(tmp_path, resume=True).transition_, whole.transition_)

    def test_killed_after_the_checkpoint_but_before_the_notes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = self.fit(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(StoredGuards, "checkpointed", lambda self: (_ for _ in ()).throw(MemoryError()))
            saved = Checkpoint.save
            patch.setattr(Checkpoint, "save", lambda self, journey, force=False: saved(self, journey, force=True))
            with pytest.raises(MemoryError):
                self.fit(tmp_path)
        resumed = self.fit(tmp_path, resume=True)
        assert np.array_equal(resumed.transition_, whole.transition_)

    def test_without_a_checkpoint_nothing_is_noted(self, tmp_path: Path) -> None:
        inference = SCVI(length=4, batch=100, boundary=Guards(storage=tmp_path / "g"), max_updates=50)
        words(inference).fit(text())
        assert (tmp_path / "g.undo").stat().st_size < 100

    def test_restarts_use_one_file_after_the_other(self, tmp_path: Path) -> None:
        settings: dict[str, Any] = {"length": 4, "batch": 30, "max_updates": 20}
        in_memory = words(SCVI(boundary=Guards(), **settings), n_init=3).fit(text())
        stored = words(SCVI(boundary=Guards(storage=tmp_path / "g"), **settings), n_init=3)
        for checkpoint in (None, tmp_path / "c"):
            stored.fit(text(), checkpoint=checkpoint)
            assert [run.objective for run in stored.runs_] == [run.objective for run in in_memory.runs_]
            assert np.array_equal(stored.transition_, in_memory.transition_)

    def test_a_run_that_has_ended_goes_on_if_its_limit_is_raised(self, tmp_path: Path) -> None:
        settings: dict[str, Any] = {"length": 4, "batch": 30, "boundary": Guards(storage=tmp_path / "g")}
        words(SCVI(max_updates=20, **settings)).fit(text(), checkpoint=tmp_path / "c")
        longer = words(SCVI(max_updates=40, **settings)).fit(text(), checkpoint=tmp_path / "c", resume=True)
        whole = words(SCVI(max_updates=40, **settings)).fit(text())
        assert np.array_equal(longer.transition_, whole.transition_)

    def test_a_place_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        for path in (tmp_path, tmp_path / "no" / "g"):
            with pytest.raises(InputError, match="guards"):
                words(SCVI(length=4, boundary=Guards(storage=path), max_updates=2)).fit(text())
