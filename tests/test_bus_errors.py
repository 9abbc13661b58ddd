"""Files that are cut while they are mapped: an error that names the file, and never the end of the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from subchain.numerics.bus_errors import IS_KNOWN

SOURCES = Path(__file__).resolve().parents[1] / "src"

pytestmark = pytest.mark.skipif(not IS_KNOWN, reason="bus errors are handled on Linux")

BEGIN = """
import gc, os, signal, sys, threading
import numpy as np
from subchain.numerics import bus_errors
from subchain.numerics.bus_errors import watch

def mapped(name, size=100_000):
    np.save(name, np.ones(size))
    return np.load(name, mmap_mode="r")

def action():
    return bus_errors._current().handler
"""


def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program by itself: without the handler, it would be killed."""
    variables = os.environ | {"PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-c", BEGIN + text]
    return subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


def check(text: str, folder: Path) -> None:
    done = run(text, folder)
    assert done.returncode == 0, done.stderr


def test_what_a_mapped_file_has_lost_is_zero_and_the_map_is_marked(tmp_path: Path) -> None:
    check(
        """
x = mapped("x.npy")
watched, again = watch(x._mmap), watch(x._mmap)
assert watched is again and x.sum() == 100_000 and not watched.is_broken
os.truncate("x.npy", 4096)
assert x.sum() == (4096 - 128) / 8
assert watched.is_broken
del watched, again
gc.collect()
assert watch(x._mmap).is_broken  # zeros stay in its place as long as the map lives
""",
        tmp_path,
    )


def test_threads_that_read_and_write_other_maps_go_on(tmp_path: Path) -> None:
    check(
        """
maps = [mapped(f"{number}.npy", 500_000) for number in range(6)]
maps.append(np.memmap("out", dtype=float, mode="w+", shape=(500_000,)))
watched = [watch(x._mmap) for x in maps]
sums = [[] for _ in maps]
begun, is_cut = threading.Barrier(8), threading.Event()
def read(number):
    begun.wait()
    while not is_cut.is_set():
        sums[number].append(float(maps[number].sum()))
    sums[number].append(float(maps[number].sum()))
    if number == 6:
        maps[number][:] = 1.0
threads = [threading.Thread(target=read, args=(number,)) for number in range(7)]
[thread.start() for thread in threads]
begun.wait()
for name in ("1.npy", "4.npy", "out"):
    os.truncate(name, 8192)
is_cut.set()
[thread.join() for thread in threads]
assert [one.is_broken for one in watched] == [False, True, False, False, True, False, True]
assert all(set(sums[number]) == {500_000.0} for number in (0, 2, 3, 5))
""",
        tmp_path,
    )


def test_the_handler_is_there_as_long_as_it_is_needed(tmp_path: Path) -> None:
    check(
        """
def own(*_): pass
signal.signal(signal.SIGBUS, own)
before = action()
x, y = mapped("x.npy"), mapped("y.npy")
first, second = watch(x._mmap), watch(y._mmap)
during = action()
assert during != before
del first
assert action() == during
del second
assert action() == before
first = watch(x._mmap)
signal.signal(signal.SIGBUS, signal.SIG_IGN)  # somebody else's handler is neither lost nor in the way
second = watch(y._mmap)
assert action() == during
del first, second
assert action() == int(signal.SIG_IGN)
""",
        tmp_path,
    )


@pytest.mark.parametrize("fault", ["y.sum()", "os.kill(os.getpid(), signal.SIGBUS)"])
@pytest.mark.parametrize("other", ["", "import faulthandler; faulthandler.enable(); others = watch(mapped('z')._mmap)"])
def test_other_bus_errors_are_what_they_were(fault: str, other: str, tmp_path: Path) -> None:
    done = run(
        f"""
x, y = mapped("x.npy"), mapped("y.npy")
watched = watch(x._mmap)
{other.replace("'z'", "'z.npy'")}
os.truncate("y.npy", 4096)
{fault}
""",
        tmp_path,
    )
    assert done.returncode == -signal.SIGBUS
    assert ("Fatal Python error: Bus error" in done.stderr) == bool(other)


def test_a_child_of_a_fork_is_served_too(tmp_path: Path) -> None:
    check(
        """
x = mapped("x.npy")
watched = watch(x._mmap)
os.truncate("x.npy", 4096)
child = os.fork()
if child == 0:
    x.sum()
    later = mapped("y.npy")
    second = watch(later._mmap)
    os.truncate("y.npy", 4096)
    later.sum()
    os._exit(0 if watched.is_broken and second.is_broken else 1)
assert os.waitpid(child, 0)[1] == 0
assert not watched.is_broken
""",
        tmp_path,
    )


def test_more_maps_than_there_is_room_for_are_not_watched(tmp_path: Path) -> None:
    check(
        """
bus_errors._WATCHER._free = [0, 1]
x = [mapped(f"{number}.npy", 10) for number in range(3)]
watched = [watch(one._mmap) for one in x]
assert [one is None for one in watched] == [False, False, True]
del watched[0]
assert watch(x[2]._mmap) is not None
""",
        tmp_path,
    )


#: Cuts a file right after it has been found whole for the n-th time, so that the next part that is read is lost.
CUT = """
import warnings
import subchain
from subchain import *
from subchain.data.mapped import MappedFile
from subchain.errors import FileFormatError, InputError
from subchain.tasks.output import write
warnings.simplefilter("ignore")

sound, left, mark, last = MappedFile.check, 0, "", None
def check(self):
    global left, last
    sound(self)
    left -= mark in self.path
    if left == 0 and mark in self.path:
        os.truncate(self.path, 1000)
        last = self
MappedFile.check = check

def cut(number, name, run):
    global left, mark
    np.save("chain.npy", chain)
    np.save("known.npy", np.where(chain == 0, 1, -1))
    left, mark = number, name
    try:
        run()
    except (InputError, FileFormatError) as error:  # the latter where it is opened once more
        assert name in str(error), error
        assert left <= 0
        return True
    if left <= 0:  # after it had been read for the last time
        assert not last._watched.is_broken, f"{name} was cut at {number}, and nobody noticed"
    return left <= 0

chain = np.arange(20_000) % 5
words = Categorical(n_categories=5)
"""

FITS = """
for inference in (VI(max_iter=3, tolerance=0.0), VI(max_iter=2, tolerance=0.0, cluster="state"), CVI(max_iter=2),
                  SVI(length=10, batch=5, max_updates=30, report_every=10, boundary=Buffer(2)),
                  Gibbs(n_samples=2, burn_in=0, n_chains=1)):
    model, number = HMM(2, words, inference=inference, random_state=0), 1
    while cut(number, "chain.npy", lambda: model.fit("chain.npy", checkpoint="c", resume=False)):
        number += 1 + number // 3
    assert number > 3
"""

TASKS = """
model = HMM(2, words, inference=VI(max_iter=2), random_state=0).fit(chain[:1000])
def consume():
    for first, table in model.predict_proba_blocks("chain.npy", block=1000):
        assert np.isfinite(table).all()
for task in (lambda: model.predict("chain.npy", out="out.npy"), lambda: model.predict_proba("chain.npy"),
             lambda: model.filter("chain.npy"), lambda: model.score("chain.npy"), lambda: model.segments("chain.npy"),
             lambda: model.sample_paths("chain.npy", 2), lambda: model.impute("chain.npy"), consume,
             lambda: model.predict("chain.npy", "viterbi"), lambda: model.score_samples("chain.npy"),
             lambda: model.score([np.load("chain.npy", mmap_mode="r")[place:] for place in (0, 9)]),
             lambda: model.partial_fit("chain.npy"), lambda: HMM(2, words).partial_fit("chain.npy")):
    number = 1
    while cut(number, "chain.npy", task):
        number += 1
    assert number > 1
    if os.path.exists("out.npy"):
        os.unlink("out.npy")
"""

KNOWN = """
known = lambda: np.load("known.npy", mmap_mode="r")
np.save("known.npy", np.full(len(chain), -1))
model = HMM(2, words, inference=VI(max_iter=2, tolerance=0.0), random_state=0).fit(chain[:1000])
for task in (lambda: HMM(2, words, inference=VI(max_iter=2, tolerance=0.0)).fit(chain, states=known()),
             lambda: HMM(2, words, inference=CVI(max_iter=2)).fit(chain, states=known()),
             lambda: HMM(2, words, inference=VI(max_iter=2)).fit([chain, chain], states=[known(), None]),
             lambda: model.predict_proba(chain, states=known()), lambda: model.score(chain, states=known())):
    number = 1
    while cut(number, "known.npy", task):
        number += 1 + number // 3
    assert number > 1
"""

STORES = """
def guarded():
    if os.path.exists("guards"):
        os.unlink("guards")
    inference = SVI(length=10, batch=5, max_updates=20, report_every=10, boundary=Guards(storage="guards"))
    HMM(2, words, inference=inference, random_state=0).fit(chain, checkpoint="c", resume=False)
def shared():
    inference = CVI(max_iter=2, storage=".", cluster="subchain", length=100)
    model = HMM(2, words, inference=inference, random_state=0).fit(chain, checkpoint="c", resume=False)
    model.predict_proba(chain)
    model.save("m")
for name, fit in (("guards", guarded), (".shares", shared)):
    number = 1
    while cut(number, name, fit):
        number += 1 + number // 3
    assert number > 3

def fill(table):
    table[:50_000] = 1.0
    (path,) = [name for name in os.listdir() if name.endswith("p.npy")]
    os.truncate(path, 1000)
    table[50_000:] = 1.0
def refused(out):
    try:
        write(out, (100_000,), float, fill)
    except InputError as error:
        assert "p.npy changed from 800128 to 1000 bytes" in str(error) and "subchain-" not in str(error), error
        return True
assert refused("p.npy")
assert not [name for name in os.listdir() if name.endswith("p.npy")]
assert refused(np.lib.format.open_memmap("p.npy", "w+", float, (100_000,)))
"""


@pytest.mark.parametrize("program", [FITS, TASKS, KNOWN, STORES], ids=["fits", "tasks", "known", "stores"])
def test_a_file_that_is_cut_while_it_is_read_ends_in_an_error_that_names_it(program: str, tmp_path: Path) -> None:
    """Wherever it is cut; nothing that was computed from zeros is returned, or kept in a model or a checkpoint."""
    check(CUT + program, tmp_path)
