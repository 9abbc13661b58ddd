"""Threads that share work: results, errors, nesting, many fits at once, forked processes."""

from __future__ import annotations

import itertools
import multiprocessing
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from types import FrameType
from typing import Any

import numpy as np
import pytest

from subchain import EM, HMM
from subchain.engines.cpu import crew as crew_module
from subchain.engines.cpu import fused
from subchain.engines.cpu.crew import Crew, crew, n_cores
from subchain.engines.cpu.workspace import Workers

X = np.repeat(np.random.default_rng(1).normal(size=(400, 2)) * 3.0, 10, axis=0)
X += np.random.default_rng(2).normal(size=X.shape)


def fitted(n_jobs: int | None = None) -> HMM:
    return HMM(3, "gaussian", inference=EM(max_iter=4, tolerance=0), random_state=0, n_jobs=n_jobs).fit(X)


def assert_all_idle(own: Crew) -> None:
    """Helpers that came too late for a job may still be on their way back."""
    end = time.monotonic() + 5.0
    while own._busy and time.monotonic() < end:
        time.sleep(0.001)
    assert own._busy == 0


@pytest.mark.parametrize("n_jobs", [1, 2, 7])
def test_results_are_in_the_order_of_the_items(n_jobs: int) -> None:
    def square(item: int) -> int:
        time.sleep(0.001 * (item % 3))
        return item**2

    assert Workers(n_jobs).map(square, list(range(20))) == [item**2 for item in range(20)]
    assert Workers(n_jobs).map(square, []) == []


def test_helpers_are_kept() -> None:
    own, seen = Crew(), set()

    def work() -> None:
        seen.add(threading.current_thread())
        time.sleep(0.01)

    for _ in range(5):
        own.share(work, 4)
    assert len(seen) == 4


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_error_ends_the_work_and_is_raised_once(n_jobs: int) -> None:
    begun = []

    def task(item: int) -> None:
        begun.append(item)
        if item == 2:
            raise ValueError("item 2")
        time.sleep(0.01)

    with pytest.raises(ValueError, match="item 2"):
        Workers(n_jobs).map(task, list(range(100)))
    assert len(begun) < 20
    assert Workers(n_jobs).map(abs, [-1, -2]) == [1, 2]


def test_work_is_done_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    own, items, done = Crew(), iter(range(50)), []

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    own.share(lambda: done.extend(items), 4)
    assert done == list(range(50))
    assert_all_idle(own)


def test_an_interruption_waits_for_helpers() -> None:
    own, main, ended = Crew(), threading.current_thread(), []

    def work() -> None:
        if threading.current_thread() is main:
            time.sleep(0.05)
            raise KeyboardInterrupt
        time.sleep(0.3)
        ended.append(1)

    with pytest.raises(KeyboardInterrupt):
        own.share(work, 3)
    assert len(ended) == 2
    assert_all_idle(own)


def test_no_interruption_loses_helpers() -> None:
    """Ctrl-C at any line of the crew: nobody works on, all helpers are idle, and the handlers of signals are back."""
    own, reached = Crew(), [0, 0]

    def interrupt_at(line: int) -> bool:
        """Share work, interrupted before that line; return whether there is such a line."""

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if frame.f_code.co_filename != crew_module.__file__:
                return None
            reached[0] += event == "line"
            if event == "line" and reached[0] == line:
                signal.raise_signal(signal.SIGINT)
            return trace

        reached[0], before = 0, sys.gettrace()
        sys.settrace(trace)
        try:
            own.share(lambda: time.sleep(0.0002), 4)
        except KeyboardInterrupt:
            reached[1] += 1
        finally:
            sys.settrace(before)
        return reached[0] >= line

    handler, lines = signal.getsignal(signal.SIGINT), itertools.count(1)
    while interrupt_at(next(lines)):
        assert signal.getsignal(signal.SIGINT) is handler
        assert_all_idle(own)
    assert reached[1] > 30, "no interruption has got through"
    threads = set()
    for _ in range(20):
        own.share(lambda: (threads.add(threading.current_thread()), time.sleep(0.01)), 4)  # type: ignore[func-returns-value]
    assert len(threads) == 4


def test_a_second_signal_is_answered_though_the_handler_of_the_first_raises() -> None:
    answered: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: answered.append(number))
    try:
        with pytest.raises(KeyboardInterrupt), crew_module._Shield():  # noqa: PT012
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert answered == [signal.SIGTERM]


def test_tasks_may_share_work_themselves() -> None:
    workers = Workers(4)

    def outer(item: int) -> int:
        return sum(workers.map(lambda inner: item * inner, list(range(5))))

    assert workers.map(outer, list(range(30))) == [10 * item for item in range(30)]


def test_threads_at_work_are_no_more_than_cores_and_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew_module, "n_cores", lambda: 4)
    own, lock, at_work, most = Crew(), threading.Lock(), [0], [0]

    def call(number: int) -> None:
        items = iter(range(30))

        def work() -> None:
            for _ in items:
                with lock:
                    at_work[0] += 1
                    most[0] = max(most[0], at_work[0])
                time.sleep(0.002)
                with lock:
                    at_work[0] -= 1

        own.share(work, 4)

    with ThreadPoolExecutor(3) as callers:
        list(callers.map(call, range(9)))
    assert most[0] <= 4 + 3 - 1  # three callers may come while four threads are busy with the first one's work
    assert_all_idle(own)


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
def test_eight_fits_at_once_are_those_of_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "LARGE", 0)
    alone = fitted()
    with ThreadPoolExecutor(8) as callers:
        together = list(callers.map(lambda _: fitted(), range(8)))
    for model in together:
        np.testing.assert_array_equal(model.transition_, alone.transition_)
        np.testing.assert_array_equal(model.emission_.means, alone.emission_.means)
    assert_all_idle(crew)
    helpers = [thread for thread in threading.enumerate() if getattr(thread, "_crew", None) is crew]
    assert len(helpers) <= max(16, 2 * n_cores())


@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")
@pytest.mark.parametrize("n_jobs", [1, 2, 3, 16])
def test_any_number_of_threads_gives_the_same_bits(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "LARGE", 0)
    one, other = fitted(1), fitted(n_jobs)
    np.testing.assert_array_equal(one.transition_, other.transition_)
    np.testing.assert_array_equal(one.emission_.covariances, other.emission_.covariances)
    assert one.trace_.objective == other.trace_.objective
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(one.predict(X, decoding="viterbi"), other.predict(X, decoding="viterbi"))


def _in_a_process(_: int) -> float:
    return float(fitted(2).score(X))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork processes")
@pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning", "ignore::DeprecationWarning")
def test_a_pool_of_forked_processes_fits() -> None:
    expected = float(fitted(2).score(X))  # the parent has helpers already
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("fork")) as pool:
        found = [future.result(timeout=120) for future in [pool.submit(_in_a_process, number) for number in range(6)]]
    assert found == [expected] * 6


def ask_for_handlers(answers: multiprocessing.Queue[Any]) -> None:
    answers.put([signal.getsignal(number) == expected for number, expected in USUAL.items()])


#: Handlers while no work is shared.
USUAL = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork processes")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_process_that_another_thread_forks_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        monkeypatch.setitem(USUAL, number, signal.default_int_handler)
    before = {number: signal.signal(number, handler) for number, handler in USUAL.items()}
    try:
        context = multiprocessing.get_context("fork")
        answers = context.Queue()

        def fork_beside() -> None:
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler  # the shield is up
            child = context.Process(target=ask_for_handlers, args=(answers,))
            other = threading.Thread(target=child.start)
            other.start()
            other.join()
            child.join(20.0)

        Crew().share(fork_beside, 1)
        assert answers.get(timeout=20.0) == [True, True]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_helper_that_comes_too_late_changes_nothing() -> None:
    own, done, main = Crew(), [], threading.current_thread()
    for number in range(200):  # the caller has often ended before the last of the helpers is awake
        own.share(lambda number=number: done.append((number, threading.current_thread() is main)), 8)
        counted = len(done)
        time.sleep(0.0005)
        assert len(done) == counted, "a helper has begun after its job had ended"
    assert_all_idle(own)
    assert [number for number, is_caller in done if is_caller] == list(range(200))
