"""Where the package runs: read-only installations, full disks, processes without a console, threads and forks."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import caching
from threadpoolctl import threadpool_info, threadpool_limits

from subchain import CVI, HMM, SVI, VI, Buffer, Categorical, Gibbs
from subchain.core.files import reserve
from subchain.engines.cpu.blas import SingleThreaded
from subchain.errors import FileWriteError, InputError
from subchain.inference.run import loop
from subchain.numerics.kernel_cache import KernelCache
from subchain.numerics.linking import linked

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
#: Settings under which Numba finds no folder for its cache.
NO_CACHE = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator", "NUMBA_CACHE_DIR": f"{os.devnull}/cache"}

can_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def run_program(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program by itself; it is killed if it hangs."""
    variables = os.environ | {"PYTHONPATH": str(SOURCES)} | environment
    return subprocess.run(
        [sys.executable, "-c", text], env=variables, capture_output=True, text=True, timeout=100, check=False
    )


# ---- the cache of compiled kernels -----------------------------------------------------------------------------------


@pytest.fixture
def fresh_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KernelCache, "_has_warned", False)


@pytest.fixture
def kernel_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_warning: None) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def doubling() -> Any:
    def double(x):
        return 2 * x

    return linked()(double)


def test_every_module_can_be_imported_where_no_folder_can_be_written() -> None:
    modules = [
        ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for path in sorted((SOURCES / "subchain").rglob("*.py"))
        if "linked" in path.read_text(encoding="utf8")
    ]
    done = run_program(f"import importlib\nfor name in {modules!r}: importlib.import_module(name)", **NO_CACHE)
    assert (done.returncode, done.stderr) == (0, "")


def test_kernels_are_cached_through_one_function() -> None:
    for path in sorted((SOURCES / "subchain").rglob("*.py")):
        assert "cache=True" not in path.read_text(encoding="utf8"), f"{path}: use numerics.linking"


def test_without_a_cache_kernels_work_and_one_warning_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, fresh_warning: None
) -> None:
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = doubling(), doubling()
    with pytest.warns(UserWarning, match="NUMBA_CACHE_DIR") as caught:
        assert (first(2), second(3), first(1.5)) == (4, 6, 3.0)
    assert len(caught) == 1


def fill_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_data", refuse)


def replace_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = folder.iterdir()
    found.rmdir()
    found.write_text("")


@pytest.mark.parametrize("break_cache", [fill_disk, replace_folder])
def test_a_cache_that_breaks_does_not_end_a_fit(
    break_cache: Callable[[Path, pytest.MonkeyPatch], None], kernel_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = doubling()
    break_cache(kernel_cache, monkeypatch)
    with pytest.warns(UserWarning, match="NUMBA_CACHE_DIR"):
        assert kernel(2) == 4
    assert kernel(2.5) == 5.0
    assert not list(kernel_cache.rglob("*.nbi"))  # an index without data would lead to the data of older code


def test_a_damaged_cache_is_replaced(kernel_cache: Path) -> None:
    assert doubling()(2) == 4
    (index,) = kernel_cache.rglob("*.nbi")
    index.write_bytes(index.read_bytes()[:20])
    assert doubling()(2) == 4
    again = doubling()
    assert again(2) == 4
    assert sum(again.stats.cache_hits.values()) == 1
    assert doubling().stats.cache_path.startswith(str(kernel_cache))


SHORTEST = "import numpy as np; from subchain.emissions.scaling import exponentiate_in_place as exponentiate; "
LEAST_LOG = "table = np.array([[0.0], [-650.0]]); exponentiate(table); print(np.log(table[1, 0]).round())"


def test_kernels_are_compiled_anew_when_any_other_file_of_the_package_changes(tmp_path: Path) -> None:
    """A new version leaves the files of old kernels where they are; they contain constants and functions of others."""
    package = tmp_path / "subchain"
    shutil.copytree(SOURCES / "subchain", package, ignore=shutil.ignore_patterns("__pycache__"))
    found = []
    functions = package / "numerics" / "vectors" / "functions.py"
    for least in ("-700.0", "-600.0"):
        functions.write_text(functions.read_text(encoding="utf8").replace("-700.0", least), encoding="utf8")
        found.append(run_program(SHORTEST + LEAST_LOG, PYTHONPATH=str(tmp_path)).stdout.split())
    assert list(package.rglob("*.nbc"))
    assert found == [["-650.0"], ["-600.0"]]


def test_an_entry_of_other_types_is_not_used(kernel_cache: Path) -> None:
    """Two processes that compile at the same time may write over each other's files."""
    first = doubling()
    assert (first(2), first(2.5)) == (4, 5.0)
    one, other = sorted(kernel_cache.rglob("*.nbc"))
    other.write_bytes(one.read_bytes())
    again = doubling()
    assert (again(2), again(2.5)) == (4, 5.0)


# ---- full disks, and data files that change --------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte."""
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


#: Programs that write more than a megabyte to mapped files in `folder`.
WRITERS = {
    "out": "HMM(3, words, random_state=0).fit(x[:1000]).predict_proba(x, out=folder + '/p.npy')",
    "shares": "HMM(3, words, inference=CVI(max_iter=1, storage=folder), random_state=0).fit((x, [20] * 5000))",
    "guards": "HMM(3, words, inference=SVI(length=2, batch=9, max_updates=5, boundary=Guards(storage=folder + '/g')), "
    "random_state=0).fit(x)",
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_is_an_error_before_the_run(writer: str, small_disk: Path) -> None:
    program = f"""
import numpy as np
from subchain import CVI, HMM, SVI, Categorical, Guards
from subchain.errors import InputError
folder, words, x = {str(small_disk)!r}, Categorical(n_categories=5), np.arange(100_000) % 5
try:
    {WRITERS[writer]}
except InputError as error:
    print(error)
"""
    done = run_program(program)
    assert done.returncode == 0, done.stderr
    assert "MB" in done.stdout
    assert "No space left on device" in done.stdout
    assert not list(small_disk.iterdir())


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
def test_a_model_that_finds_no_room_leaves_the_old_one(small_disk: Path) -> None:
    small = HMM(2, Categorical(n_categories=5), inference=VI(max_iter=1), random_state=0).fit([0, 1, 2, 3, 4])
    large = HMM(2, Categorical(n_categories=50_000), inference=VI(max_iter=1), random_state=0).fit([0, 1, 2, 3, 4])
    path = small_disk / "model"
    small.save(path)
    with pytest.raises(FileWriteError, match=r"cannot write .*model: No space left on device") as caught:
        large.save(path)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert list(small_disk.iterdir()) == [path]
    assert HMM.load(path).family_.n_categories == 5


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
def test_a_fit_goes_on_without_a_checkpoint_that_finds_no_room(small_disk: Path) -> None:
    model = HMM(2, Categorical(n_categories=50_000), inference=VI(max_iter=2), random_state=0)
    with pytest.warns(UserWarning, match="checkpoint .* could not be written .*No space left"):
        model.fit([0, 1, 2, 3, 4], checkpoint=small_disk / "checkpoint")
    assert model.status_ == "max_iter"
    assert not list(small_disk.iterdir())


def test_a_limit_on_the_size_of_files_is_an_error_of_the_package(tmp_path: Path) -> None:
    program = f"""
import resource
import numpy as np
from subchain import HMM, VI, Categorical
from subchain.errors import FileWriteError
out, x = {str(tmp_path / "out.npy")!r}, np.arange(50_000) % 5
model = HMM(3, Categorical(n_categories=5), inference=VI(max_iter=1), random_state=0).fit(x[:1000])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for write in (lambda: model.predict_proba(x, out=out), lambda: model.filter(x, out=out),
              lambda: model.predict(x, out=out), lambda: model.save(out)):
    try:
        write()
    except FileWriteError as error:
        print(error)
"""
    done = run_program(program)
    assert done.returncode == 0, done.stderr
    assert [f"cannot write {tmp_path}" in line and "File too large" in line for line in done.stdout.splitlines()] == [
        True
    ] * 4
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [None, errno.EOPNOTSUPP])
def test_space_is_reserved_where_the_system_has_no_function_for_it(
    number: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise AttributeError if number is None else OSError(number, "not supported")

    path = tmp_path / "sparse"
    path.write_bytes(b"begin")
    os.truncate(path, 100_000)
    monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    reserve(path)
    assert path.read_bytes() == b"begin" + bytes(100_000 - 5)
    if hasattr(path.stat(), "st_blocks"):
        assert path.stat().st_blocks * 512 >= 100_000


ALGORITHMS = {
    "vi": VI(max_iter=5, tolerance=0.0),
    "mean field": VI(max_iter=5, tolerance=0.0, cluster="state"),
    "svi": SVI(length=10, batch=5, max_updates=50, report_every=10),
    "svi, fused": SVI(length=10, batch=5, max_updates=50, report_every=10, boundary=Buffer(2)),
    "cvi": CVI(max_iter=5, tolerance=0.0),
    "gibbs": Gibbs(n_samples=5, burn_in=0),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_data_file_that_is_cut_during_a_fit_ends_it_with_an_error(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "chain.npy"
    np.save(path, np.arange(20_000) % 5)
    advance = loop._advance

    def cut(*arguments: Any) -> None:
        advance(*arguments)
        os.truncate(path, 1000)

    monkeypatch.setattr(loop, "_advance", cut)
    model = HMM(2, Categorical(n_categories=5), inference=ALGORITHMS[algorithm], random_state=0)
    with pytest.raises(InputError, match=r"chain\.npy changed from 160128 to 1000 bytes"):
        model.fit(path)


# ---- a process without a console -------------------------------------------------------------------------------------


@pytest.mark.parametrize("progress", ["auto", True])
def test_without_standard_error_a_fit_is_silent(progress: object) -> None:
    program = f"""
import sys
sys.stderr = None
import numpy as np
from subchain import HMM, VI
HMM(2, "categorical", inference=VI(max_iter=2), progress={progress!r}, random_state=0).fit(np.arange(100) % 3)
print("done")
"""
    done = run_program(program)
    assert (done.stdout, done.returncode) == ("done\n", 0)


def test_without_a_console_commands_work(tmp_path: Path) -> None:
    program = """
import sys
sys.stdout = sys.stderr = None
sys.argv = ["subchain", "sample", "--help"]
from subchain.cli import main
main()
"""
    assert run_program(program).returncode == 0


# ---- threads and forks -----------------------------------------------------------------------------------------------


def n_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_overlapping_fits_leave_the_threads_of_matrix_libraries_as_they_were() -> None:
    limit, is_inside, may_leave = SingleThreaded(), threading.Event(), threading.Event()

    def later_fit() -> None:
        with limit:
            is_inside.set()
            may_leave.wait(10)

    with threadpool_limits(2, user_api="blas"):
        before = n_threads()
        assert before
        thread = threading.Thread(target=later_fit)
        with limit, limit:
            thread.start()
            is_inside.wait(10)
            assert n_threads() == [1] * len(before)
        assert n_threads() == [1] * len(before)
        may_leave.set()
        thread.join()
        assert n_threads() == before


@can_fork
def test_a_fork_during_a_compilation_and_a_fit_can_fit() -> None:
    program = """
import os, signal, sys, threading, time
import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from threadpoolctl import threadpool_info, threadpool_limits
from subchain import HMM, VI
from subchain.engines.cpu.blas import single_threaded
from subchain.numerics.linking import linked

def fit():
    HMM(2, "categorical", inference=VI(max_iter=2, tolerance=0.0), random_state=0, n_jobs=2).fit(np.arange(100) % 3)

def busy():
    with single_threaded, global_compiler_lock:
        busy_now.set()
        time.sleep(0.5)
    time.sleep(1.0)

fit()
threadpool_limits(2, user_api="blas")
busy_now = threading.Event()
threading.Thread(target=busy).start()
busy_now.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)  # kills a child that hangs
    fit()
    linked()(lambda x: x + 1)(1)
    os._exit(0 if {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"} == {2} else 1)
sys.exit(os.waitpid(child, 0)[1])
"""
    done = run_program(program)
    assert done.returncode == 0, done.stderr
