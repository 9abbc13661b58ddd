"""Data that come in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import EM, HMM, SVI, VI, Categorical
from subchain.datasets import categorical_chain, gaussian_chain
from subchain.errors import InputError

CHAIN = categorical_chain(3000, n_states=3, n_symbols=5, random_state=0)


def start() -> HMM:
    return HMM(3, Categorical(0.5, n_categories=5), inference=VI(max_iter=20, tolerance=0.0), random_state=0)


def test_pieces_of_a_chain_are_one_chain() -> None:
    """Under one surrogate, the filtered past is carried over exactly, and every move is counted."""
    x = CHAIN.observations.values
    model = start().fit(x[:1000])
    before = model.statistics_
    model.partial_fit(x[1000:2000])
    model.partial_fit(x[2000:], continues=True)
    counted = model.statistics_.pairs.sum() - before.pairs.sum()
    assert counted == pytest.approx(999 + 1000)
    assert model.statistics_.initial.sum() == pytest.approx(2.0)
    assert model.statistics_.n_observations == 3000


def test_the_move_between_two_pieces_is_believed_as_in_one() -> None:
    from subchain.data import Sequences
    from subchain.engines import CpuEngine, Part
    from subchain.models.streaming import _run

    x = CHAIN.observations.values[:40]
    surrogate = start().fit(CHAIN.observations).point_.surrogate()
    engine = CpuEngine(1)
    _, end = _run(engine, surrogate, Part(Sequences(x)), None)
    _, middle = _run(engine, surrogate, Part(Sequences(x[:39])), None)
    second, last = _run(engine, surrogate, Part(Sequences(x[39:])), middle)
    np.testing.assert_allclose(last, end)
    # the last move is believed in the light of everything before it and of the last observation: exactly as in one
    np.testing.assert_allclose(second.pairs.sum(axis=0), last, rtol=1e-9)
    np.testing.assert_allclose(second.pairs.sum(), 1.0)


@pytest.mark.parametrize("inference", [VI(), EM(), SVI(length=10), EM(batch=10)])
@pytest.mark.parametrize("total", [None, 30_000.0])
def test_a_stream_of_pieces_finds_the_model(inference: Any, total: float | None) -> None:
    chain = gaussian_chain(30_000, n_states=3, n_features=2, separation=6.0, random_state=3)
    x = chain.observations.values
    model = HMM(3, "gaussian", inference=inference, random_state=0)
    for piece in range(30):
        model.partial_fit(x[1000 * piece : 1000 * (piece + 1)], total=total, continues=piece > 0)
    batch = HMM(3, "gaussian", random_state=0).fit(x)
    assert model.score(x) / 30_000 > batch.score(x) / 30_000 - 0.02


def test_the_end_of_the_chain_survives_saving_and_reordering(tmp_path: Path) -> None:
    x = CHAIN.observations.values
    model = start().partial_fit(x[:1000])
    model.save(tmp_path / "m")
    loaded = HMM.load(tmp_path / "m")
    for stream in (model, loaded):
        stream.partial_fit(x[1000:2000], continues=True)
    assert np.array_equal(model.transition_, loaded.transition_)
    turned = HMM.load(tmp_path / "m").order_states(by="occupancy").partial_fit(x[1000:2000], continues=True)
    assert turned.score(x) == pytest.approx(model.score(x))


def test_what_cannot_go_on_is_refused() -> None:
    x = CHAIN.observations.values
    with pytest.raises(InputError, match="begin the sequence"):
        start().partial_fit(x[:100], continues=True)
    model = start().partial_fit(x[:100])
    with pytest.raises(InputError, match="one sequence"):
        model.partial_fit([x[100:200], x[200:300]], continues=True)


def test_a_small_batch_is_one_call_of_the_engine_and_no_search_for_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    from subchain.engines import CpuEngine
    from subchain.engines.cpu import blas

    class Counting(CpuEngine):
        calls: list[str] = []  # noqa: RUF012

        def minibatch(self, *arguments: Any, **settings: Any) -> Any:
            self.calls.append("minibatch")
            return super().minibatch(*arguments, **settings)

        def statistics(self, *arguments: Any) -> Any:
            self.calls.append("statistics")
            return super().statistics(*arguments)

    model = start().set_params(engine=Counting(1)).partial_fit(CHAIN.observations.values[:50])
    monkeypatch.setattr(blas, "ThreadpoolController", None)
    Counting.calls.clear()
    for _ in range(3):
        model.partial_fit(CHAIN.observations.values[:50])
    assert Counting.calls == ["minibatch"] * 3


def test_small_and_large_batches_give_the_same_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    from subchain.data import Sequences
    from subchain.engines import CpuEngine, Part
    from subchain.models import streaming

    data = Sequences(CHAIN.observations.values, [0, 0, 700, 701, 3000, 3000])
    surrogate = start().fit(CHAIN.observations).point_.surrogate()
    small, end = streaming._run(CpuEngine(1), surrogate, Part(data), None)
    monkeypatch.setattr(streaming, "SMALL", 0)
    large, same_end = streaming._run(CpuEngine(1), surrogate, Part(data), None)
    np.testing.assert_allclose(end, same_end, rtol=1e-9)
    for name, array in large.arrays().items():
        np.testing.assert_allclose(small.arrays()[name], array, rtol=1e-9, err_msg=name)
    assert small.n_observations == large.n_observations
    assert small.log_normalizer == pytest.approx(large.log_normalizer)
