"""Word aligners by others, run where they are installed: eflomal (Östling and Tiedemann 2016), fast_align (Dyer 2013).

Both align the two directions one by one; the links of the directions are returned, source position first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from subchain.alignment import Links, ParallelText, read_links


class Found(NamedTuple):
    """Links of both directions, and the processor seconds of both."""

    forward: Links
    backward: Links
    seconds: float


def _eflomal(model: int) -> Callable[[Path, Path], list[list[str]]]:
    def commands(source: Path, target: Path) -> list[list[str]]:
        folder = source.parent
        links = ["-f", str(folder / "forward"), "-r", str(folder / "backward")]
        return [["eflomal-align", "-s", str(source), "-t", str(target), "--model", str(model), *links]]

    return commands


def _fast_align(source: Path, target: Path) -> list[list[str]]:
    joined = source.parent / "joined"
    lines = zip(source.read_text("utf8").splitlines(), target.read_text("utf8").splitlines(), strict=True)
    joined.write_text("".join(f"{s} ||| {t}\n" for s, t in lines), encoding="utf8")
    return [["fast_align", "-i", str(joined), "-d", "-o", "-v", *reverse] for reverse in ([], ["-r"])]


#: By name: the program that must be installed, and the commands that align two files.
OTHERS: dict[str, tuple[str, Callable[[Path, Path], list[list[str]]]]] = {
    "eflomal, HMM": ("eflomal-align", _eflomal(2)),
    "eflomal": ("eflomal-align", _eflomal(3)),
    "fast_align": ("fast_align", _fast_align),
}


def installed() -> list[str]:
    """The aligners that can be run."""
    return [name for name, (program, _) in OTHERS.items() if shutil.which(program) is not None]


def align(name: str, text: ParallelText) -> Found:
    """Run an aligner on a text."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, side) for side in ("source", "target")]
        for side, path in enumerate(files):
            path.write_text("".join(" ".join(pair[side]) + "\n" for pair in text), encoding="utf8")
        commands = OTHERS[name][1](*files)
        before, began = os.times(), time.perf_counter()
        for direction, command in zip(("forward", "backward"), commands, strict=False):
            done = subprocess.run(command, capture_output=True, check=True)
            if len(commands) == 2:
                Path(folder, direction).write_bytes(done.stdout)
        after, ended = os.times(), time.perf_counter()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        links = [read_links(Path(folder, direction), text) for direction in ("forward", "backward")]
    return Found(links[0], links[1], used or ended - began)
