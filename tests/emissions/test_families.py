from __future__ import annotations

import pytest

from subchain.emissions import FAMILIES, Emission, Poisson, resolve_emission
from subchain.errors import InputError


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_family_is_found_by_its_name(name: str) -> None:
    family = resolve_emission(name)
    assert isinstance(family, Emission)
    assert family.name == name


def test_a_family_is_itself() -> None:
    family = Poisson(shape=3.0)
    assert resolve_emission(family) is family


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown emission 'posson'.*Did you mean 'poisson'"):
        resolve_emission("posson")


def test_a_class_is_not_a_family() -> None:
    with pytest.raises(InputError, match="such as Poisson"):
        resolve_emission(Poisson)  # type: ignore[arg-type]
