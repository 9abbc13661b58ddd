"""Layout of text tables, found in their first lines: the separator of fields, a line of names, commas in numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from subchain.errors import InputError

#: Separators that are tried, in order of preference.
SEPARATORS = (",", "\t", ";", "|")
#: Words for separators that are hard to type.
SPELLED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
#: Cells that are missing.
MISSING_CELLS = ("", "NA", "N/A", "NaN", "nan")
#: Share of the lines that must agree, because a cell may hold anything.
MOST = 0.9
ISO = "ISO 8601"
_DATE_FORMATS = (ISO, "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%b-%Y", "%d-%m-%Y", "%b %d, %Y", "%H:%M:%S")
#: How texts in these notations begin; it is checked first, since parsing takes ten microseconds a notation.
_DATE_BEGINS = re.compile(r"\d{1,4}([-/.:])\s*\w+\1|\d{8}\D|\d{4}-?W\d|[^\W\d]+\.?\s+\d{1,2}\s*,")


class TableLayout(NamedTuple):
    """Layout of a text table.

    Attributes
    ----------
    separator : character between fields
    has_header : whether the first line holds the names of the columns
    decimal_point : character in numbers
    first : fields of the first line
    """

    separator: str
    has_header: bool
    decimal_point: str
    first: list[str]

    @property
    def names(self) -> list[str]:
        """Names of the columns; without a line of names they are numbered, "column_0", "column_1", …"""
        return self.first if self.has_header else [f"column_{number}" for number in range(len(self.first))]


def sniff(lines: Sequence[str], separator: str | None = None, header: bool | None = None) -> TableLayout:
    r"""Return the layout of a table by its first lines that are not blank; what is given is not sniffed.

    Examples
    --------
    >>> sniff(["day;speed", "1;0,5", "2;1,5"])
    TableLayout(separator=';', has_header=True, decimal_point=',', first=['day', 'speed'])
    >>> sniff(["1.5,2", "2.5,3"]).names
    ['column_0', 'column_1']
    """
    chosen = _separator(lines) if separator is None else checked_separator(separator)
    rows = _rows(lines, chosen)
    first, body = (rows[0], rows[1:]) if rows else ([], [])
    body = [row for row in body if len(row) == len(first)]
    with_commas = chosen != "," and any(_is_decimal_comma(cell) for row in body or [first] for cell in row)
    return TableLayout(
        chosen, _has_header(first, body) if header is None else header, "," if with_commas else ".", first
    )


def checked_separator(given: str) -> str:
    """Return the separator; an `InputError` if it is not one character, or the word for one.

    Examples
    --------
    >>> checked_separator("tab"), checked_separator(";")
    ('\\t', ';')
    """
    found = SPELLED.get(given.lower(), given)
    if len(found) != 1 or found in '"\n\r':
        raise InputError(f"the separator must be one character, or {', '.join(SPELLED)}, not {given!r}.")
    return found


def is_date(text: str) -> bool:
    """Return whether a text is a date or a time in a common notation.

    Examples
    --------
    >>> is_date("1999-01-04"), is_date("4/1/1999"), is_date("1999"), is_date("monday")
    (True, True, False, False)
    """
    text = text.strip()
    return _DATE_BEGINS.match(text) is not None and any(_parses(text, form) for form in _DATE_FORMATS)


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parses(text: str, form: str) -> bool:
    try:
        datetime.fromisoformat(text) if form == ISO else datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def _rows(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the fields of lines; quotes are ignored if they do not end."""
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return [line.split(separator) for line in lines]


def _separator(lines: Sequence[str]) -> str:
    """Return the separator that divides nearly all lines into the same number of fields, more than one."""
    for separator in SEPARATORS:
        sizes = [len(row) for row in _rows(lines, separator)]
        usual = max(set(sizes), key=sizes.count, default=1)
        # A comma may also be in every number; names on the first line then hold none.
        if usual > 1 and sizes[0] == usual and sizes.count(usual) >= MOST * len(sizes):
            if separator == "," and _is_in_numbers(lines):
                continue
            return separator
    return ","


def _is_in_numbers(lines: Sequence[str]) -> bool:
    """Return whether fields between semicolons or tabs are numbers with commas in all lines."""
    for separator in ("\t", ";"):
        rows = _rows(lines, separator)
        if all(len(row) > 1 and all(_is_decimal_comma(cell) or is_number(cell) for cell in row) for row in rows):
            return True
    return False


def _is_decimal_comma(cell: str) -> bool:
    whole, comma, fraction = cell.strip().partition(",")
    return comma == "," and whole.lstrip("+-").isdecimal() and fraction.isdecimal()


def _is_value(cell: str) -> bool:
    """Return whether a cell holds a number or a date, which names of columns are not."""
    return cell.strip() != "" and (is_number(cell) or _is_decimal_comma(cell) or is_date(cell))


def _has_header(first: list[str], body: list[list[str]]) -> bool:
    """Return whether the first line holds names: texts above numbers, or texts that do not occur below."""
    if any(_is_value(cell) for cell in first):
        return False
    if not body:
        return True
    columns = [[cell for cell in column if cell not in MISSING_CELLS] for column in zip(*body, strict=True)]
    if any(column and sum(map(_is_value, column)) >= MOST * len(column) for column in columns):
        return True
    fewest = min(range(len(columns)), key=lambda index: len(set(columns[index])))
    return first[fewest] not in columns[fewest] and len(set(first)) == len(first)
