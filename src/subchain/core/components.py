"""What every component has in common: its settings are the arguments of its constructor, and can be read and changed.

This is the protocol of scikit-learn (`get_params`, `set_params`, `clone`, tags), kept without importing scikit-learn,
which would take most of the time that a first result needs.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any, Self

import numpy as np

from subchain.errors import InputError, unknown_name

#: Longest description of a setting that is shown whole.
LONGEST = 60


def _arguments(kind: type) -> dict[str, Any]:
    """Names of a constructor's arguments and their defaults."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]  # type: ignore[misc]
    return {p.name: p.default for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


class Component:
    """Base of models, families, priors and algorithms; constructors only store their arguments under the same names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings by name and, if `deep`, those of components among them as `name__setting`."""
        settings = {name: getattr(self, name) for name in _arguments(type(self))}
        if deep:
            for name, value in list(settings.items()):
                if isinstance(value, Component):
                    settings.update({f"{name}__{inner}": item for inner, item in value.get_params().items()})
        return settings

    def _written(self) -> dict[str, Any]:
        """Settings as they go into files."""
        return self.get_params(deep=False)

    def set_params(self, **settings: Any) -> Self:
        """Change settings (`name=value`), or those of components among them (`name__setting=value`)."""
        for key in sorted(settings, key=lambda key: "__" in key):  # whole components first, then settings inside them
            name, _, inner = key.partition("__")
            if name not in _arguments(type(self)):
                raise unknown_name(f"setting of {type(self).__name__}", name, _arguments(type(self)))
            if inner:
                value = getattr(self, name)
                if not isinstance(value, Component):
                    raise InputError(
                        f"{key} cannot be set: {name}={value!r} has no settings of its own; give {name} an object "
                        "first."
                    )
                value.set_params(**{inner: settings[key]})
            else:
                setattr(self, name, settings[key])
        return self

    def __repr__(self) -> str:
        """The call that makes this component, without settings that are left at their defaults."""
        defaults = _arguments(type(self))
        shown = []
        for name, value in self.get_params(deep=False).items():
            default = defaults.get(name, inspect.Parameter.empty)
            if value is not default and not (np.isscalar(value) and value == default):
                text = repr(value)
                shown.append(f"{name}={text if len(text) <= LONGEST else text[:LONGEST] + '…'}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks before it works with an estimator: ours need no target."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=InputTags())


def clone(component: Any) -> Any:
    """A component with the same settings and no results; components among the settings are cloned, the rest copied."""
    if not isinstance(component, Component):
        return copy.deepcopy(component)
    own = getattr(component, "__sklearn_clone__", None)
    if own is not None:
        return own()
    return type(component)(**{name: clone(value) for name, value in component.get_params(deep=False).items()})
