"""Files of language models and texts, as the commands of `subchain lm` read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subchain.data import Sequences, Vocabulary
    from subchain.neural import NeuralHMM

#: The word that ends every sentence.
END = "</s>"


def read_sentences(path: Path, vocabulary: Vocabulary | None = None) -> Sequences:
    """Return the lines of a text as sequences of words that end with `END`."""
    from subchain.cli.exit_codes import UnreadableError
    from subchain.data import read_text

    if not path.is_file():
        raise UnreadableError(f"there is no file {str(path)!r}.")
    return read_text(path, end=END, vocabulary=vocabulary)


def load_language_model(path: Path, device: str) -> NeuralHMM:
    """Return the model of a file."""
    from subchain.cli.exit_codes import UnreadableError
    from subchain.neural import NeuralHMM

    if not path.is_file():
        raise UnreadableError(f"there is no file {str(path)!r}.")
    return NeuralHMM.load(path, device)


def known_words(model: Any) -> Vocabulary:
    """Return the vocabulary of a model; raise an `InputError` if it was not trained on words."""
    from subchain.errors import InputError

    if model.vocabulary_ is None:
        raise InputError("the model was trained on codes; `subchain lm` needs one that was trained on words.")
    vocabulary: Vocabulary = model.vocabulary_
    return vocabulary
