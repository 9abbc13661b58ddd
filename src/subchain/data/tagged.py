"""Reader of tagged corpora with a word, a tab and a tag on every line and a blank line after every sentence."""

from __future__ import annotations

from collections.abc import Iterator

from subchain.data.coding import CodedLines
from subchain.data.conllu import TaggedText
from subchain.data.lines import TextSource, numbered_lines
from subchain.data.vocabulary import Vocabulary
from subchain.errors import FileFormatError, InputError

Token = tuple[str, str | None]


def read_tagged(
    source: TextSource,
    lower: bool = False,
    min_count: int = 1,
    max_size: int | None = None,
    unknown: str | None = "<unk>",
    vocabulary: Vocabulary | None = None,
    tag_vocabulary: Vocabulary | None = None,
) -> TaggedText:
    """Read lines of ``word<TAB>tag`` as sentences of coded words, with their tags.

    There are no comments: ``#`` is a word. If a line ends with the tab, the tag is missing (-1).

    Parameters
    ----------
    source : path or open file
        UTF-8 text; files that end in .gz, .xz or .bz2 are decompressed.
    lower : bool
        Convert the words to lower case.
    min_count, max_size, unknown
        Settings of the vocabulary of the words, see :meth:`Vocabulary.build`.
    vocabulary, tag_vocabulary : Vocabulary, optional
        Existing vocabularies (of the training data) to use instead of new ones.

    Returns
    -------
    TaggedText
        ``words`` and ``tags``, one sequence per sentence each; the most frequent word and tag have code 0.

    Examples
    --------
    >>> import io
    >>> from subchain.data import read_tagged
    >>> words, tags = read_tagged(io.StringIO("Dogs\\tNNS\\nbark\\tVBP\\n\\nRun\\tVB\\n"))
    >>> words.lengths, tags.vocabulary.decode(tags[0])
    (array([2, 1]), ['NNS', 'VBP'])
    """
    fold = str.lower if lower else str
    words, tags = CodedLines(), CodedLines()
    for sentence in _sentences(source):
        words.append(fold(word) for word, _ in sentence)
        tags.append(tag for _, tag in sentence)
    if not len(words):
        raise InputError("the corpus holds no words; give a file with at least one word.")
    if vocabulary is None:
        vocabulary = words.build_vocabulary(min_count, max_size, unknown)
    if tag_vocabulary is None:
        tag_vocabulary = tags.build_vocabulary()
    return TaggedText(words.as_lines(vocabulary), tags.as_lines(tag_vocabulary))


def _sentences(source: TextSource) -> Iterator[list[Token]]:
    """Yield the sentences of a file as lists of (word, tag)."""
    tokens: list[Token] = []
    for number, line in numbered_lines(source):
        if "\t" in line or line.strip():
            tokens.append(_token(line, number))
        elif tokens:
            yield tokens
            tokens = []
    if tokens:
        yield tokens


def _token(line: str, number: int) -> Token:
    fields = line.split("\t")
    if len(fields) != 2 or not fields[0]:
        raise FileFormatError(
            f"line {number} is {line[:60]!r}; every line needs a word, a tab and a tag, and a blank line ends a "
            "sentence."
        )
    word, tag = fields
    return word, tag or None
