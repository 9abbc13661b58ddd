"""Public functions show how they are called; pytest runs the examples (`--doctest-modules`)."""

from __future__ import annotations

import doctest

import subchain.selection


def test_every_public_function_has_an_example():
    for name in subchain.selection.__all__:
        member = getattr(subchain.selection, name)
        if not isinstance(member, type):
            assert doctest.DocTestFinder(recurse=False).find(member)[0].examples
