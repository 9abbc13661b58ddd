"""Base class of models, families, priors and algorithms: settings are the constructor's arguments.

It implements the estimator protocol of scikit-learn (`get_params`, `set_params`, `clone`, tags) without importing
scikit-learn, because that import takes longer than a first small fit.
"""

from __future__ import annotations

import copy
import inspect
import re
from typing import Any, Self

import numpy as np

from subchain.errors import InputError, unknown_name

#: Maximum length of one setting in `repr`; longer ones are truncated.
MAX_SHOWN = 60
#: The section of a docstring that describes the settings.
PARAMETERS = re.compile(r"^Parameters\n-+\n(?:(?!^\w+\n-+$).*\n?)*", re.MULTILINE)


def _arguments(kind: type) -> dict[str, Any]:
    """Return the names of a constructor's arguments with their defaults."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]  # type: ignore[misc]
    return {p.name: p.default for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


class Component:
    """Base of models, families, priors and algorithms.

    Constructors of subclasses store their arguments under the same names and do nothing else. A subclass without
    "Parameters" in its docstring gets those of its base class, whose settings it takes.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own, base = (inspect.cleandoc(kind.__doc__ or "") for kind in (cls, cls.__mro__[1]))
        inherited = PARAMETERS.search(base)
        if own and inherited and not PARAMETERS.search(own):
            text, heading, examples = own.partition("\nExamples\n")
            cls.__doc__ = f"{text.rstrip()}\n\n{inherited[0].rstrip()}\n{heading}{examples}"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; if `deep`, also those of nested components as `name__setting`."""
        settings = {name: getattr(self, name) for name in _arguments(type(self))}
        if deep:
            for name, value in list(settings.items()):
                if isinstance(value, Component):
                    settings.update({f"{name}__{inner}": item for inner, item in value.get_params().items()})
        return settings

    def _saved_settings(self) -> dict[str, Any]:
        """Return the settings that model files store."""
        return self.get_params(deep=False)

    def set_params(self, **settings: Any) -> Self:
        """Change settings (`name=value`) and settings of nested components (`name__setting=value`)."""
        for key in sorted(settings, key=lambda key: "__" in key):  # whole components before their settings
            name, _, inner = key.partition("__")
            if name not in _arguments(type(self)):
                raise unknown_name(f"setting of {type(self).__name__}", name, _arguments(type(self)))
            if inner:
                value = getattr(self, name)
                if not isinstance(value, Component):
                    raise InputError(
                        f"{key} cannot be set, because {name}={value!r} is not an object with settings; set {name} to "
                        "an object first."
                    )
                value.set_params(**{inner: settings[key]})
            else:
                setattr(self, name, settings[key])
        return self

    def __repr__(self) -> str:
        """Return the constructor call that creates this component, without settings that have their default value."""
        defaults = _arguments(type(self))
        shown = []
        for name, value in self.get_params(deep=False).items():
            default = defaults.get(name, inspect.Parameter.empty)
            if value is not default and not (np.isscalar(value) and value == default):
                text = repr(value)
                shown.append(f"{name}={text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + '…'}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_tags__(self) -> Any:
        """Return the tags that scikit-learn reads from estimators: no target is required."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=InputTags())


def clone(component: Any) -> Any:
    """Return an unfitted component with the same settings; nested components are cloned, other settings deep-copied."""
    if not isinstance(component, Component):
        return copy.deepcopy(component)
    own = getattr(component, "__sklearn_clone__", None)
    if own is not None:
        return own()
    return type(component)(**{name: clone(value) for name, value in component.get_params(deep=False).items()})
