"""Files that give every word a class: `word<TAB>class`, or `class<TAB>word<TAB>count`."""

from __future__ import annotations

from subchain.data.lines import TextSource, name_of_source, numbered_lines
from subchain.errors import FileFormatError


def read_class_names(source: TextSource) -> dict[str, str]:
    """Return the name of each word's class, in the order of the file.

    Lines are `word<TAB>class`, as `mkcls` writes them, or `class<TAB>word<TAB>count`, as programs for Brown's classes
    write them; a word and its class may be separated by blanks, too. Empty lines are passed over.

    Examples
    --------
    >>> import io
    >>> read_class_names(io.StringIO("the\\t4\\n7\\tcat\\t12\\n"))
    {'the': '4', 'cat': '7'}
    """
    names: dict[str, str] = {}
    for number, line in numbered_lines(source):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")] if "\t" in line else line.split()
        if len(fields) not in ((2, 3) if "\t" in line else (2,)) or not all(fields):
            raise FileFormatError(
                f"line {number} of {name_of_source(source)} is {line[:60]!r}; a line of word classes is "
                "`word<TAB>class` or `class<TAB>word<TAB>count`."
            )
        word, name = fields if len(fields) == 2 else (fields[1], fields[0])
        if names.setdefault(word, name) != name:
            raise FileFormatError(
                f"line {number} of {name_of_source(source)} gives {word!r} a second class, {name!r}; a word is in one "
                "class."
            )
    return names
