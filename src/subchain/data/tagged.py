"""Tagged corpora in the plainest form: a word, a tab and its tag on every line, a blank line after every sentence."""

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

    There are no comments: ``#`` is a word like any other. A line that ends with its tab has a word without a known
    tag (-1).

    Parameters
    ----------
    source : path or open file
        UTF-8 text; paths that end in .gz, .xz or .bz2 are unpacked on the way.
    lower : bool
        Turn the words into lower case.
    min_count, max_size, unknown
        How the vocabulary of the words is built, see :meth:`Vocabulary.build`.
    vocabulary, tag_vocabulary : Vocabulary, optional
        Code with these (those of the training part) instead of building them.

    Returns
    -------
    TaggedText
        ``words`` and ``tags``, both one sequence per sentence; the most frequent word and tag have the code 0.

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
        raise InputError("the corpus holds no words; there is nothing to learn from.")
    if vocabulary is None:
        vocabulary = words.build_vocabulary(min_count, max_size, unknown)
    if tag_vocabulary is None:
        tag_vocabulary = tags.build_vocabulary()
    return TaggedText(words.as_lines(vocabulary), tags.as_lines(tag_vocabulary))


def _sentences(source: TextSource) -> Iterator[list[Token]]:
    """Collect the lines of one sentence after the other."""
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
            f"line {number} is no word with its tag, separated by one tab, but {line[:60]!r}; a blank line ends a "
            "sentence."
        )
    word, tag = fields
    return word, tag or None
