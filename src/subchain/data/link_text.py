"""Lines of links as text, compiled: files of them have ten million lines and more."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from subchain.numerics.linking import linked

#: Bytes of the longest link, with the space or the end of the line behind it.
MOST_BYTES = 2 * 10 + 2
ZERO, DASH, SPACE, NEWLINE = 48, 45, 32, 10


@linked()
def _write_number(number, out, at):
    """Write a number that is not negative to `out`, from place `at` on; return the place behind it."""
    n_digits, rest = 1, number // 10
    while rest:
        n_digits, rest = n_digits + 1, rest // 10
    for place in range(at + n_digits - 1, at - 1, -1):
        out[place] = ZERO + number % 10
        number //= 10
    return at + n_digits


@linked()
def format_lines(offsets, source, target, out):
    """Write the links `i-j` of each pair as a line to `out`; return the number of bytes."""
    at = 0
    for pair in range(offsets.shape[0] - 1):
        for link in range(offsets[pair], offsets[pair + 1]):
            if link > offsets[pair]:
                out[at] = SPACE
                at += 1
            at = _write_number(source[link], out, at)
            out[at] = DASH
            at = _write_number(target[link], out, at + 1)
        out[at] = NEWLINE
        at += 1
    return at
