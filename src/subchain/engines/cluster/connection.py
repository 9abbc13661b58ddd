"""The processes of a Dask cluster: connecting, placing shards, running tasks, and what becomes of lost processes."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import pickle
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from subchain.engines.cpu.crew import n_cores
from subchain.errors import ClusterError, InputError
from subchain.numerics.kernel_cache import source_digest

#: Seconds to wait for the scheduler, and for the first worker.
TIMEOUT = 20.0
#: How often a pass is begun again after processes were lost.
ATTEMPTS = 4
#: Bytes of an argument from which it is sent once to every process instead of with every task.
LARGE = 1 << 18


def _distributed() -> Any:
    """Return the package, which is not installed with subchain itself."""
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise InputError(
            "a cluster needs the package `distributed`: pip install 'subchain[cluster]', or fit on this machine with "
            "engine='auto'."
        ) from None


def connect(address: Any) -> Any:
    """Return a client: the one that was given, one for an address, or one for new processes ("local:4")."""
    distributed = _distributed()
    if isinstance(address, distributed.Client):
        return address
    if isinstance(address, str) and address.startswith("local:"):
        return _start(address.removeprefix("local:"))
    if not isinstance(address, str):
        raise InputError(
            f"Cluster takes the address of a scheduler, such as 'tcp://10.0.0.1:8786', 'local:4', or a "
            f"distributed.Client, not {address!r}."
        )
    try:
        return distributed.Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"no scheduler answers at {address!r} within {TIMEOUT:g} s ({type(error).__name__}). Start one with `dask "
            "scheduler`, and workers with `dask worker ADDRESS`; or have processes on this machine: Cluster('local:4')."
        ) from None


def _start(number: str) -> Any:
    """Start processes on this machine, with as many threads in all as there are cores."""
    if not number.isdigit() or int(number) < 1:
        raise InputError(f"'local:{number}' must name a number of processes, such as 'local:4'.")
    distributed = _distributed()
    cluster = distributed.LocalCluster(
        n_workers=int(number), threads_per_worker=max(1, n_cores() // int(number)), processes=True,
        dashboard_address=None, silence_logs=50,
    )  # fmt: skip
    client = distributed.Client(cluster, set_as_default=False)
    client._subchain_cluster = cluster  # the processes live as long as their client
    return client


def _version() -> tuple[str, str]:
    """What must be the same in all processes."""
    import subchain

    return subchain.__version__, source_digest()


@dataclasses.dataclass
class _Placed:
    """Something that a process holds."""

    worker: str
    future: Any


class Connection:
    """A client, and what its processes hold of one part of the data."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._checked: set[str] = set()
        self._placed: dict[int, _Placed] = {}

    def workers(self) -> list[str]:
        """Return the addresses of the processes that are there, in a fixed order; an error if there are none."""
        found = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
        if not found:
            with contextlib.suppress(Exception):
                self.client.wait_for_workers(1, timeout=TIMEOUT)
            found = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
        if not found:
            raise ClusterError(
                f"the cluster at {self.client.scheduler.address} has no workers; start some with `dask worker ADDRESS`."
            )
        self._check_versions([worker for worker in found if worker not in self._checked])
        return found

    def _check_versions(self, workers: list[str]) -> None:
        if not workers:
            return
        ours = _version()
        for worker, theirs in self.client.run(_version, workers=workers, on_error="return").items():
            if isinstance(theirs, BaseException):
                raise ClusterError(
                    f"worker {worker} cannot import this version of subchain ({type(theirs).__name__}: {theirs}); "
                    "install the same version everywhere."
                )
            if tuple(theirs) != ours:
                raise ClusterError(
                    f"worker {worker} has subchain {theirs[0]} with other sources than here ({ours[0]}); install the "
                    "same version everywhere."
                )
        self._checked |= set(workers)

    # ---- what processes hold -----------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Let the processes release what they hold."""
        self._placed = {}

    def place(self, homes: Sequence[str], make: Callable[[int], Any]) -> None:
        """Have process `homes[i]` hold item i; those that are not where they should be are made and sent."""
        for number, home in enumerate(homes):
            held = self._placed.get(number)
            if held is None or held.worker != home or held.future.status != "finished":
                future = self.client.scatter(make(number), workers=[home], hash=False)
                self._placed[number] = _Placed(home, future)

    def held(self, number: int) -> Any:
        """Return a handle on an item, as an argument of a task."""
        return self._placed[number].future

    def home(self, number: int) -> str:
        """Return the process that holds an item."""
        return self._placed[number].worker

    # ---- tasks -------------------------------------------------------------------------------------------------------

    def shared(self, argument: Any) -> Any:
        """Return an argument of many tasks: itself, or a handle on what was sent to all processes if it is large."""
        if len(pickle.dumps(argument, protocol=5)) < LARGE:
            return argument
        return self.client.scatter([argument], broadcast=True, hash=False)[0]

    def submit(self, worker: str, task: Callable[..., Any], *arguments: Any) -> Any:
        """Have a process do a task; return a handle on its result."""
        key = f"subchain-{task.__name__}-{uuid.uuid4().hex}"
        return self.client.submit(task, *arguments, key=key, workers=[worker], allow_other_workers=False, pure=False)
