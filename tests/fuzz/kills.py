"""Runs that are killed or interrupted at random moments, and resumed: they end in the bits of a run left in peace.

`python -m fuzz.kills 100 --seed 0 --jobs 2` (with `src` and `tests` on the path) tries a hundred of them.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from fuzz.cases import Case, allow_small_shards, draw_case
from fuzz.children import PASSED, REFUSED, VIOLATION, Verdict, command
from fuzz.fits import Violation, require, same_bits
from subchain import CVI, HMM, Beam, Gibbs, Guards
from subchain.errors import SubchainError
from subchain.inference.run import checkpoint
from subchain.inference.stochastic.settings import Stochastic

#: So many times the iterations of a case of `fuzz.fits`, so that there is time to be killed in.
LONGER = 8


def lengthened(case: Case, rng: np.random.Generator, folder: Path) -> Case:
    """The case with more iterations, and sometimes with its memory in a file."""
    inference = case.settings["inference"]
    for name in ("max_iter", "max_updates", "n_samples"):
        if getattr(inference, name, None) is not None:
            inference.set_params(**{name: getattr(inference, name) * LONGER})
    if isinstance(inference, CVI) and rng.random() < 0.3:
        inference.set_params(storage=folder / "marginals")
    elif isinstance(inference, Stochastic) and isinstance(inference.boundary, Guards) and rng.random() < 0.5:
        case.settings["n_init"] = 1
        inference.set_params(boundary=Guards(storage=folder / "guards"))
    elif isinstance(inference, (Gibbs, Beam)):
        inference.set_params(keep_states=bool(rng.random() < 0.3))
    return case


def fit(case: Case, path: Path | None, *, resume: bool = False) -> HMM:
    return case.model().fit(
        case.data.sequences(), sample_weight=case.weights, checkpoint=path, resume=resume, **case.fit
    )


def run(seed: int) -> Verdict:
    """Try the case with this number, with a checkpoint after nearly every iteration."""
    share, checkpoint.SHARE = checkpoint.SHARE, 20.0
    try:
        return _run(seed)
    finally:
        checkpoint.SHARE = share


def _run(seed: int) -> Verdict:
    """Run the case with this number in peace, then in a forked process that is ended one to three times."""
    rng = np.random.default_rng([21, seed])
    allow_small_shards()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        straight = lengthened(draw_case(seed), np.random.default_rng(seed), _new(folder / "straight"))
        try:
            fit(straight, None)  # compiles
            began = time.perf_counter()
            whole = fit(lengthened(draw_case(seed), np.random.default_rng(seed), _new(folder / "again")), None)
        except SubchainError as error:
            return Verdict(seed, REFUSED, type(error).__name__)
        duration = time.perf_counter() - began
        case = lengthened(draw_case(seed), np.random.default_rng(seed), _new(folder / "killed"))
        path = folder / "killed" / "checkpoint"
        try:
            for _ in range(int(rng.integers(1, 4))):
                number = signal.SIGKILL if rng.random() < 0.7 else signal.SIGINT
                end_after(case, path, number, rng.uniform(0.0, 1.2) * duration)
            resumed = fit(case, path, resume=True)
            same_bits(whole, resumed, "resumed")
            require(whole.runs_ == resumed.runs_, f"other restarts: {whole.runs_} and {resumed.runs_}")
            require(_same(whole.trace_.objective, resumed.trace_.objective), "another trace")
            left = {file.name for file in path.parent.iterdir()} - {"checkpoint", "marginals", "guards", "guards.undo"}
            require(not left, f"files are left over: {left}")
        except (Violation, SubchainError) as error:
            return Verdict(seed, VIOLATION, f"{type(error).__name__}: {error}")
    return Verdict(seed, PASSED)


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _same(one: list[float], other: list[float]) -> bool:
    return len(one) == len(other) and bool(np.array_equal(one, other, equal_nan=True))


def end_after(case: Case, path: Path, number: signal.Signals, seconds: float) -> None:
    """Fit in a forked process, which the signal reaches after some time; an exception there is a violation."""
    reader, writer = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the child takes signals when it is ready for them
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = 1
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            fit(case, path, resume=path.exists())
            code = 0
        except KeyboardInterrupt:
            code = 0
        except BaseException as error:  # a forked process must not go on as its parent
            os.write(writer, f"{type(error).__name__}: {error}".encode()[:1000])
        finally:
            os._exit(code)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.close(writer)
    time.sleep(seconds)
    os.kill(child, number)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    require(
        not said and ended_by in (0, signal.SIGKILL, signal.SIGINT), f"the process that was ended: {said or ended_by}"
    )


if __name__ == "__main__":
    sys.exit(command(__doc__.partition("\n")[0], {"kills": run}, lambda seed: str(draw_case(seed))))
