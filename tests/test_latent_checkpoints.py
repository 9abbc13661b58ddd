"""Checkpoints of grammars that are split and merged: one for each stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain.errors import InputError
from subchain.grammar import LatentPCFG, parse_bracketed, write_trees

TREES = [
    parse_bracketed("(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat))))"),
    parse_bracketed(
        "(S (NP (PRP it)) (VP (VBZ sees) (NP (NP (DT a) (NN dog)) (PP (IN with) (NP (DT the) (NN cat))))))"
    ),
    parse_bracketed("(S (NP (PRP it)) (VP (VBZ sees) (NP (DT the) (NN dog)) (PP (IN with) (NP (PRP it)))))"),
] * 2


def grammar(iterations: int = 3, **settings: Any) -> LatentPCFG:
    chosen: dict[str, Any] = {"training": "split_merge", "random_state": 0, "progress": False} | settings
    return LatentPCFG(2, iterations=iterations, **chosen)


def assert_same(one: LatentPCFG, other: LatentPCFG) -> None:
    for key, array in one.posterior_.arrays().items():
        np.testing.assert_array_equal(array, other.posterior_.arrays()[key])


def test_a_raised_limit_is_as_if_it_had_been_given_at_once(tmp_path: Path) -> None:
    grammar(3).fit(TREES, checkpoint=tmp_path / "c")
    again = grammar(5).fit(TREES, checkpoint=tmp_path / "c", resume=True)
    assert [len(trace) for _, trace in again.stages_] == [5, 5]
    assert_same(again, grammar(5).fit(TREES))
    assert_same(again, grammar(5).fit(TREES, checkpoint=tmp_path / "c", resume=True))
    assert_same(again, grammar(3).fit(TREES, checkpoint=tmp_path / "c", resume=True))


@pytest.mark.parametrize("settings", [{"random_state": 1}, {"inference": "vi"}, {"smoothing": 0.1}])
def test_no_file_is_touched_if_one_belongs_to_another_fit(settings: dict[str, Any], tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    grammar(2).fit(TREES, checkpoint=own)
    grammar(2, **settings).fit(TREES, checkpoint=other)
    (tmp_path / "own.2").write_bytes((tmp_path / "other.2").read_bytes())
    before = (tmp_path / "own.1").read_bytes()
    with pytest.raises(InputError, match=r"own\.2 belongs to another fit"):
        grammar(4).fit(TREES, checkpoint=own, resume=True)
    assert (tmp_path / "own.1").read_bytes() == before


@pytest.mark.parametrize(("training", "name"), [("split_merge", "bank.2"), ("direct", "bank")])
def test_a_checkpoint_is_not_written_over_the_treebank(training: str, name: str, tmp_path: Path) -> None:
    model, treebank = grammar(training=training), tmp_path / name
    write_trees(treebank, TREES)
    assert treebank in model.stage_checkpoints(tmp_path / "bank")
    text = treebank.read_bytes()
    with pytest.raises(InputError, match="would overwrite the treebank"):
        model.fit(treebank, checkpoint=tmp_path / "bank", resume=False)
    assert treebank.read_bytes() == text
