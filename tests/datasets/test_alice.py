from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from subchain.datasets import alice as alice_module
from subchain.datasets import load_alice
from subchain.datasets.alice import Alice
from subchain.errors import InputError


def text(alice: Alice, sequence: int, glue: str) -> str:
    observations = alice.observations
    return glue.join(observations.vocabulary.decode(observations[sequence]))


def test_the_papers_have_663_chunks_of_200_characters():
    alice = load_alice()
    assert alice.observations.lengths.tolist() == [200] * 663
    assert alice.observations.vocabulary.to_list() == list(" abcdefghijklmnopqrstuvwxyz")
    assert np.bincount(alice.chapters).tolist() == [53, 51, 42, 65, 54, 64, 58, 64, 58, 52, 48, 54]


def test_characters_are_letters_and_single_spaces_without_headings():
    alice = load_alice(sequences="chapters")
    chapters = [text(alice, i, "") for i in range(12)]
    assert all(set(chapter) == set(" abcdefghijklmnopqrstuvwxyz") for chapter in chapters)
    assert not any("  " in chapter or chapter != chapter.strip() for chapter in chapters)
    assert chapters[0].startswith("alice was beginning to get very tired of sitting by her sister on the bank and of")
    assert chapters[11].startswith("here cried alice quite forgetting in the flurry of the moment")
    assert chapters[11].endswith("remembering her own childlife and the happy summer days")
    assert not any("chapter" in chapter for chapter in chapters)


def test_words_are_lower_case_and_keep_apostrophes():
    alice = load_alice("words", "chapters")
    vocabulary = alice.observations.vocabulary
    assert text(alice, 0, " ").startswith("alice was beginning to get very tired of sitting by her sister")
    assert {"don't", "rabbit", "alice"} <= set(vocabulary)
    assert vocabulary.to_list()[0] == "the"
    assert alice.chapters.tolist() == list(range(12))


@pytest.mark.parametrize(("unit", "glue"), [("characters", ""), ("words", " ")])
def test_every_cut_tells_the_same_story_in_the_same_codes(unit: str, glue: str):
    chain, chapters, chunks = (load_alice(unit, cut) for cut in ("chain", "chapters", "chunks"))
    assert chain.chapters.tolist() == [-1]
    assert text(chain, 0, glue) == " ".join(text(chapters, i, glue) for i in range(12))
    assert chain.observations.vocabulary == chunks.observations.vocabulary
    for chapter in range(12):
        pieces = np.concatenate([chunks.observations[i] for i in np.flatnonzero(chunks.chapters == chapter)])
        whole = chapters.observations[chapter]
        assert len(whole) - len(pieces) < 200
        np.testing.assert_array_equal(pieces, whole[: len(pieces)])


def test_chunks_have_the_asked_length():
    assert set(load_alice("words", chunk=50).observations.lengths.tolist()) == {50}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"unit": "character"}, "Did you mean 'characters'"),
        ({"sequences": "chapter"}, "Did you mean 'chapters'"),
        ({"chunk": 0}, "chunk must be at least 1"),
        ({"chunk": 10**6}, "no chapter has chunk=1000000 characters or more"),
    ],
)
def test_bad_settings_are_named(arguments, message: str):
    with pytest.raises(InputError, match=message):
        load_alice(**arguments)


def test_the_embedded_text_is_that_of_the_experiments(shared_data: Path):
    embedded = Path(alice_module.__file__).with_name("carroll-alice.txt.gz")
    assert embedded.read_bytes() == (shared_data / "alice" / "carroll-alice.txt.gz").read_bytes()
