"""Links from the posteriors of both directions."""

from __future__ import annotations

import numpy as np
from naive_alignment import grown_product

from subchain.alignment import ParallelText, product_links
from subchain.structures.alignment.text import AlignedText
from subchain.tasks.linking import links_of

RNG = np.random.default_rng(3)
LENGTHS = [(1, 1), (0, 2), (5, 4), (1, 6), (7, 1), *RNG.integers(1, 9, size=(200, 2)).tolist()]


def drawn() -> tuple[AlignedText, np.ndarray]:
    """Sentence pairs of these lengths, with posteriors many of which are near the threshold, or half of it."""
    source, target = ([["w"] * size for size in side] for side in zip(*LENGTHS, strict=True))
    data = AlignedText.of(ParallelText.from_sentences(source, target))
    shape = (data.n_cells, 2)
    return data, RNG.choice([0.02, 0.15, 0.3, 0.5, 0.9], size=shape, p=[0.6, 0.1, 0.1, 0.1, 0.1]).astype(np.float32)


def tables(data: AlignedText, posteriors: np.ndarray) -> list[np.ndarray]:
    """Matrices (I, J, 2) of the pairs."""
    found = []
    for pair, (n_source, n_target) in enumerate(LENGTHS):
        cells = posteriors[data.cells.starts[pair] : data.cells.starts[pair + 1]]
        found.append(cells.reshape(-1, n_source, 2).swapaxes(0, 1) if cells.size else np.zeros((n_source, n_target, 2)))
    return found


def test_links_of_the_product_are_those_over_the_threshold() -> None:
    data, posteriors = drawn()
    for found, table in zip(links_of(data.cells, posteriors, "product", 0.4), tables(data, posteriors), strict=True):
        np.testing.assert_array_equal(found, product_links([table[..., 0]], [table[..., 1]], 0.4)[0])


def test_words_without_a_link_take_one_beside_their_neighbours() -> None:
    data, posteriors = drawn()
    n_more = 0
    for found, table in zip(
        links_of(data.cells, posteriors, "grow-product", 0.4), tables(data, posteriors), strict=True
    ):
        means = np.sqrt(table.astype(float).prod(axis=2))
        expected = grown_product(means, 0.4)
        assert {tuple(link) for link in found.tolist()} == expected
        n_more += len(expected) - int((means > 0.4).sum())
    assert n_more > 20


def test_both_words_that_translate_one_are_linked_to_it() -> None:
    data = AlignedText.of(ParallelText.from_sentences(["a b"], ["x1 x2 y"]))
    forward, backward = np.array([[0.9, 0.9, 0.0], [0.0, 0.0, 0.9]]), np.array([[0.8, 0.1, 0.0], [0.0, 0.0, 0.9]])
    cells = np.stack([forward.T.ravel(), backward.T.ravel()], axis=1).astype(np.float32)
    assert links_of(data.cells, cells, "product", 0.4)[0].tolist() == [[0, 0], [1, 2]]
    assert links_of(data.cells, cells, "grow-product", 0.4)[0].tolist() == [[0, 0], [0, 1], [1, 2]]
