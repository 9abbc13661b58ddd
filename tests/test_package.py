"""What can be imported from the package itself."""

from __future__ import annotations

import subchain


def test_every_name_is_exported_and_leads_somewhere() -> None:
    assert set(subchain.__all__) == set(subchain._HOME)
    for name in subchain.__all__:
        assert getattr(subchain, name).__name__ == name
    assert set(subchain.__all__) <= set(dir(subchain))
