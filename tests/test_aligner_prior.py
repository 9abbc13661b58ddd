"""Fits of word aligners that start from the counts of another aligner."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain.alignment import WordAligner
from subchain.errors import InputError
from subchain.tables import JumpSums, JumpWidths

Sentences = list[list[str]]


def swapped_words(n: int, seed: int = 0, letter: str = "w", n_words: int = 30) -> tuple[Sentences, Sentences]:
    """Sentences with their words in capitals as translation, of which every other one has changed places."""
    rng, source, target = random.Random(seed), Sentences(), Sentences()
    for _ in range(n):
        one = [f"{letter}{rng.randrange(n_words)}" for _ in range(rng.randint(1, 8))]
        other = [word.upper() for word in one]
        for k in range(len(other) - 1):
            if rng.random() < 0.5:
                other[k], other[k + 1] = other[k + 1], other[k]
        source.append(one)
        target.append(other)
    return source, target


def n_right(aligner: WordAligner, source: Sentences, target: Sentences) -> int:
    links = aligner.align(source, target)
    return sum(source[p][i].upper() == target[p][j] for p, of in enumerate(links) for i, j in of.tolist())


SETTINGS: dict[str, Any] = {"progress": False, "random_state": 0}


@pytest.mark.parametrize("inference", ["cvi", "em", "scvi"])
def test_word_pairs_of_the_prior_that_do_not_occur_again_are_kept(inference: str, tmp_path: Any) -> None:
    first, second = swapped_words(200), swapped_words(100, 1, "v")
    known = WordAligner(inference=inference, **SETTINGS).fit(*first)
    carried = WordAligner(inference=inference, **SETTINGS).fit(*second, prior=known)
    assert n_right(carried, *first) >= 0.97 * n_right(known, *first)
    assert n_right(carried, *second) > 0.9 * sum(map(len, second[0]))
    assert sum(map(len, carried.align())) > 0.9 * sum(map(len, second[0]))
    table = carried.posterior_.translation
    table.check_fields()
    np.testing.assert_allclose(np.bincount(table.sources(), table.pairs[:, 0]), table.totals_source[:-1], rtol=1e-6)
    np.testing.assert_allclose(np.bincount(table.targets, table.pairs[:, 1]), table.totals_target[:-1], rtol=1e-6)
    keys = table.sources() * len(table.null_target) + table.targets
    assert (np.diff(keys) > 0).all()
    carried.save(tmp_path / "aligner")
    assert n_right(WordAligner.load(tmp_path / "aligner"), *first) == n_right(carried, *first)


def test_counts_are_carried_over_a_chain_of_texts() -> None:
    first, second = swapped_words(200), swapped_words(100, 1, "v")
    known = WordAligner(**SETTINGS).fit(*first)
    between = WordAligner(**SETTINGS).fit(*second, prior=known)
    few = first[0][:20], first[1][:20]
    last, straight = (WordAligner(**SETTINGS).fit(*few, prior=prior) for prior in (between, known))
    assert n_right(last, *few) >= n_right(straight, *few) - 2
    assert {"w1", "v1"} <= set(last.lexicon_["source"])


class TestResume:
    """Checkpoints of stages belong to the prior, and to the stages before."""

    def fit(self, folder: Path, resume: bool | None = None, prior: Any = None, **settings: Any) -> WordAligner:
        settings = SETTINGS | {"iterations": 2} | settings
        path = folder / "c"
        return WordAligner(**settings).fit(*swapped_words(40), prior=prior, checkpoint=path, resume=resume)

    @pytest.mark.parametrize("inference", ["cvi", "em"])
    def test_another_prior_is_refused(self, inference: str, tmp_path: Path) -> None:
        one, other = (WordAligner(**SETTINGS).fit(*swapped_words(30, seed)) for seed in (5, 6))
        first = self.fit(tmp_path, None, one, inference=inference)
        for prior in (other, None):
            with pytest.raises(InputError, match="another fit: its prior"):
                self.fit(tmp_path, True, prior, inference=inference)
        again = self.fit(tmp_path, True, one, inference=inference)
        np.testing.assert_array_equal(again.posterior_.translation.pairs, first.posterior_.translation.pairs)

    @pytest.mark.parametrize("inference", ["cvi", "em", "vi", "gibbs"])
    def test_an_earlier_stage_with_other_iterations_is_refused_before_anything_runs(
        self, inference: str, tmp_path: Path
    ) -> None:
        first = self.fit(tmp_path, inference=inference)
        before = (tmp_path / "c.1").read_bytes()
        first_told = "c.1 belongs to another fit: its inference"  # which has the sweeps of burn-in
        told = first_told if inference == "gibbs" else "c.2 belongs to another fit: its earlier stages"
        with pytest.raises(InputError, match=told):
            self.fit(tmp_path, True, inference=inference, iterations=5)
        assert (tmp_path / "c.1").read_bytes() == before
        if inference != "gibbs":
            more = self.fit(tmp_path, True, inference=inference, iterations=(2, 5))
            whole = WordAligner(inference=inference, iterations=(2, 5), **SETTINGS).fit(*swapped_words(40))
            np.testing.assert_array_equal(more.posterior_.translation.pairs, whole.posterior_.translation.pairs)
        else:
            again = self.fit(tmp_path, True, inference=inference)
            np.testing.assert_array_equal(again.posterior_.translation.pairs, first.posterior_.translation.pairs)

    def test_a_stage_that_started_from_other_statistics_is_refused(self, tmp_path: Path) -> None:
        settings: dict[str, Any] = {"inference": "gibbs", "random_state": 1}
        self.fit(tmp_path, **settings)
        (tmp_path / "c.2").rename(tmp_path / "kept")
        self.fit(tmp_path, False, **settings | {"random_state": 2})
        (tmp_path / "kept").rename(tmp_path / "c.2")
        with pytest.raises(InputError, match="c.2 belongs to another fit: its start"):
            self.fit(tmp_path, True, **settings)

    def test_files_are_checked_before_the_first_stage_runs(self, tmp_path: Path) -> None:
        self.fit(tmp_path)
        (tmp_path / "c.1").unlink()
        with pytest.raises(InputError, match="but not .*c.1, the checkpoint of the stage before"):
            self.fit(tmp_path, True)
        with pytest.raises(InputError, match="c.2 exists already"):
            self.fit(tmp_path)
        assert not (tmp_path / "c.1").exists()


def test_jumps_have_exposures_only_if_all_counts_have_them() -> None:
    prior, counts = JumpWidths.prior(1), np.array([[1.0, 2.0, 3.0]] * 2)
    exposed, plain = JumpSums(counts, np.full((2, 3), 4.0)), JumpSums(counts, np.zeros((2, 3)))
    np.testing.assert_allclose(prior.update(exposed).update(exposed).exposures, 8.0)
    for mixed in (prior.update(exposed).update(plain), prior.update(plain).update(exposed)):
        assert not mixed.exposures.any()
        np.testing.assert_allclose(mixed.mode().weights, counts / 6.0)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_em_recovers_jumps_that_its_prior_never_saw(first: bool, second: bool) -> None:
    rng = random.Random(2)
    short = [[f"w{rng.randrange(30)}" for _ in range(rng.randint(1, 3))] for _ in range(100)]
    long = [[f"w{rng.randrange(30)}" for _ in range(12)] for _ in range(100)]
    rotated = [[word.upper() for word in one[5:] + one[:5]] for one in long]
    settings: dict[str, Any] = {"inference": "em", "max_jump": 12, "end_jumps": False} | SETTINGS
    known = WordAligner(agreement=first, **settings).fit(short, [[word.upper() for word in one] for one in short])
    found = WordAligner(agreement=second, **settings).fit(long, rotated, prior=known)
    assert found.posterior_.jumps.mode().weights[0, 12 - 11] > 1e-3
    assert n_right(found, long, rotated) > 0.9 * sum(map(len, long))


def test_words_that_begin_alike_are_one_word_with_a_prefix(tmp_path: Path) -> None:
    source = ["the worker worked", "a worker works", "the house"] * 10
    target = ["der arbeiter arbeitete", "ein arbeiter arbeitet", "das haus"] * 10
    aligner = WordAligner(prefix=4, **SETTINGS).fit(source, target)
    assert "work" in aligner.source_words_
    assert max(map(len, aligner.source_words_ + aligner.target_words_)) == 4
    aligner.save(tmp_path / "a.safetensors")
    loaded = WordAligner.load(tmp_path / "a.safetensors").set_params(prefix=None)
    for known in (aligner, loaded):
        np.testing.assert_array_equal(
            known.posterior(["worked"], ["arbeitete"])[0], known.posterior(["works"], ["arbeitend"])[0]
        )
    with pytest.raises(InputError, match="prefix=4, .*this aligner .* prefix=5"):
        WordAligner(prefix=5, **SETTINGS).fit(source, target, prior=aligner)


def test_only_rare_words_are_cut_if_it_is_said_so(tmp_path: Path) -> None:
    source = ["the worker worked", "the worker works", "the house"] * 3 + ["the houses", "working"]
    target = ["der arbeiter arbeitete", "der arbeiter arbeitet", "das haus"] * 3 + ["die häuser", "arbeitend"]
    aligner = WordAligner(prefix=4, rare=3, **SETTINGS).fit(source, target)
    assert aligner.source_words_ == ["the", "worker", "work", "hous"]  # worked, works and house occur three times
    assert aligner.target_words_[:2] == ["der", "arbeiter"]
    aligner.save(tmp_path / "a.safetensors")
    loaded = WordAligner.load(tmp_path / "a.safetensors").set_params(prefix=None, rare=None)
    for known in (aligner, loaded):  # a known word stays as it is, however seldom it is now; a new one is cut
        same = known.posterior(["worked"], ["arbeitete"])[0]
        np.testing.assert_array_equal(same, known.posterior(["workable"], ["arbeitsam"])[0])
        assert not np.array_equal(same, known.posterior(["worker"], ["arbeitete"])[0])
    again = WordAligner(prefix=4, rare=3, **SETTINGS).fit(["worker workers"], ["arbeiter arbeitern"], prior=aligner)
    assert {"worker", "work"} <= set(again.source_words_)
    assert "workers" not in again.source_words_
    with pytest.raises(InputError, match="rare=None"):
        WordAligner(prefix=4, **SETTINGS).fit(source, target, prior=aligner)
    with pytest.raises(InputError, match="no prefix"):
        WordAligner(rare=3, **SETTINGS).fit(source, target)
