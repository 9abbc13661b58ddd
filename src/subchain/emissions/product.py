"""Products of families: each part describes its own columns; parts are independent given the state.

Log likelihoods of the parts add. Sums, parameters, prior and posterior are dictionaries with one entry per part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from subchain.core.records import Sums
from subchain.data.sequences import Sequences
from subchain.emissions.base import Conjugate, Emission, Likelihood, Parameters, Posterior, Table, Values
from subchain.emissions.checks import as_matrix
from subchain.emissions.families import family_of
from subchain.emissions.incremental import Incremental
from subchain.emissions.product_columns import check_disjoint, check_families, in_part, view
from subchain.emissions.product_layout import Layout
from subchain.errors import InputError, unknown_name

if TYPE_CHECKING:
    from subchain.emissions.collapsed.counts import EmissionCounts


@dataclasses.dataclass
class ProductSums(Sums):
    """Sums of every part, by name."""

    parts: dict[str, Sums]


class ProductLikelihood(Likelihood):
    """Product of the likelihoods of the parts."""

    parts: Any  # dict[str, Likelihood]; subclasses narrow it to parameters
    layout: Layout

    @property
    def n_states(self) -> int:
        first: Likelihood = next(iter(self.parts.values()))
        return first.n_states

    def log_likelihood(self, values: Values) -> Table:
        blocks = self.layout.take_apart(values)
        first, *others = (part.log_likelihood(block) for part, block in zip(self.parts.values(), blocks, strict=True))
        total: Table = sum(others, start=first)
        return total

    def zeros(self) -> ProductSums:
        return ProductSums({name: part.zeros() for name, part in self.parts.items()})

    def compiled(self, values: Values) -> Any:
        return self._compiled(values, logs=len(self.parts) > 1)

    def compiled_logs(self, values: Values) -> Any:
        return self._compiled(values, logs=True)

    def _compiled(self, values: Values, logs: bool) -> Any:
        """Return the parts one after the other as pairs; None if a part has no compiled form, or scattered columns."""
        from subchain.emissions.compiled.inherited import compiled_form
        from subchain.emissions.compiled.product import FamilyPair

        views = self.layout.views(np.asarray(values))
        if views is None:
            return None
        parts = list(zip(self.parts.values(), views, strict=True))
        found: Any = None
        for part, block in reversed(parts):
            one = compiled_form(part, block, logs=logs)
            if one is None:
                return None
            size = sum(array.size for array in part.zeros().summed_arrays())
            found = one if found is None else FamilyPair(one, found, size)
        return found

    def accumulate(self, values: Values, marginals: Table, sums: ProductSums) -> None:
        for (name, part), block in zip(self.parts.items(), self.layout.take_apart(values), strict=True):
            part.accumulate(block, marginals, sums.parts[name])


@dataclasses.dataclass
class ProductTable(ProductLikelihood):
    """Surrogate: a surrogate of each part."""

    parts: dict[str, Likelihood]
    layout: Layout


@dataclasses.dataclass
class ProductParameters(ProductLikelihood, Parameters):
    """The parameters of every part, by name: `parameters["a"]` or `parameters.a`."""

    parts: dict[str, Parameters]
    layout: Layout

    def check_fields(self) -> None:
        self.layout.check_parts(self.parts)

    def __getitem__(self, name: str) -> Any:
        """Return the parameters of one part."""
        if name not in self.parts:
            raise unknown_name("part", name, self.parts)
        return self.parts[name]

    def __getattr__(self, name: str) -> Any:
        """Return the parameters of one part; Python calls this for names that are no attributes of the class."""
        parts = vars(self).get("parts", {})
        if name not in parts:
            raise AttributeError(f"the Product has no part {name!r}; it has {', '.join(map(repr, parts)) or 'none'}.")
        return parts[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.parts]

    def at_column(self, column: int) -> tuple[Parameters, int]:
        """Return the part that describes a column of the table, and the number of the column within the part."""
        for part, columns in zip(self.parts.values(), self.layout.slots(), strict=True):
            if column in columns:
                return part, int(np.flatnonzero(columns == column)[0])
        raise InputError(f"no part of the Product describes column {column}.")

    def sample(self, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        """Draw rows (n, D) with the parts' columns in place; floating-point numbers if those of any part are."""
        return self.layout.put_together([part.sample(states, rng) for part in self.parts.values()])

    @property
    def n_free(self) -> int:
        return sum(part.n_free for part in self.parts.values())

    def expectation(self) -> NDArray[np.float64]:
        """Return the parts' expectations side by side, in the order of the parts."""
        return np.hstack([part.expectation() for part in self.parts.values()])

    def fill(self, values: Values, marginals: Table) -> Values:
        """Replace missing entries part by part; floating-point numbers if those of any part are."""
        return self._replace(values, [part.fill(block, marginals) for part, block in self._blocks(values)])

    def draw_missing(self, values: Values, states: NDArray[np.int64], rng: np.random.Generator) -> Values:
        return self._replace(values, [part.draw_missing(block, states, rng) for part, block in self._blocks(values)])

    def log_tails(self, values: Values) -> NDArray[np.float64]:
        """Return the tails of the parts' columns in place, (3, n, K, D); nan in columns of no part."""
        tails = np.full((3, len(values), self.n_states, self.layout.n_columns), np.nan)
        for (part, block), columns in zip(self._blocks(values), self.layout.slots(), strict=True):
            tails[..., columns] = part.log_tails(block)
        return tails

    def _blocks(self, values: Values) -> Iterable[tuple[Parameters, Values]]:
        """Pair each part with its columns of the observations."""
        return zip(self.parts.values(), self.layout.take_apart(values), strict=True)

    def _replace(self, values: Values, blocks: list[Values]) -> Values:
        """Return the observations with the columns of each part replaced by a block."""
        table = as_matrix(values)
        replaced = table.astype(np.result_type(table, *blocks))
        for columns, block in zip(self.layout.slots(), blocks, strict=True):
            replaced[:, columns] = as_matrix(block)
        return replaced.reshape(values.shape)


class IncrementalProduct(Incremental):
    """Incremental posterior of a product: one incremental posterior per part."""

    def __init__(self, prior: ProductPosterior, sums: ProductSums) -> None:
        self.layout = prior.layout
        self.parts = {name: part.incremental(sums.parts[name]) for name, part in prior.parts.items()}

    def steps(self, kind: str, values: Any) -> None:
        """Return None: parts are asked one after the other."""

    def surrogate(self, kind: str) -> ProductTable:
        return ProductTable({name: part.surrogate(kind) for name, part in self.parts.items()}, self.layout)

    def adopt(self, prior: ProductPosterior) -> None:
        for name, part in self.parts.items():
            part.adopt(prior.parts[name])

    def blend(self, keep: float, gain: float, fresh: ProductSums) -> None:
        for name, part in self.parts.items():
            part.blend(keep, gain, fresh.parts[name])

    def sums(self) -> ProductSums:
        return ProductSums({name: part.sums() for name, part in self.parts.items()})

    def apply_factor(self) -> None:
        for part in self.parts.values():
            part.apply_factor()

    def memory(self) -> dict[str, NDArray[Any]]:
        found = {name: part.memory() for name, part in self.parts.items()}
        return {f"{name}.{key}": array for name, memory in found.items() for key, array in memory.items()}

    def restore(self, memory: dict[str, NDArray[Any]]) -> None:
        for name, part in self.parts.items():
            start = f"{name}."
            part.restore({key.removeprefix(start): array for key, array in memory.items() if key.startswith(start)})


@dataclasses.dataclass
class ProductPosterior(Conjugate):
    """Independent distributions over the parameters of the parts; a part may be `Frozen`."""

    parts: dict[str, Posterior]
    layout: Layout

    def check_fields(self) -> None:
        self.layout.check_parts(self.parts)

    def check_sums(self, sums: ProductSums) -> None:
        for name, part in self.parts.items():
            if isinstance(part, Conjugate):
                part.check_sums(sums.parts[name])

    def update(self, sums: ProductSums) -> Self:
        updated = {name: part.update(sums.parts[name]) for name, part in self.parts.items()}
        return dataclasses.replace(self, parts=updated)

    def mean(self) -> ProductParameters:
        return ProductParameters({name: part.mean() for name, part in self.parts.items()}, self.layout)

    def mode(self) -> ProductParameters:
        return ProductParameters({name: part.mode() for name, part in self.parts.items()}, self.layout)

    def expected_log(self) -> ProductTable:
        return ProductTable({name: part.expected_log() for name, part in self.parts.items()}, self.layout)

    def predictive(self) -> ProductTable:
        return ProductTable({name: part.predictive() for name, part in self.parts.items()}, self.layout)

    def incremental(self, sums: ProductSums) -> IncrementalProduct:
        return IncrementalProduct(self, sums)

    def sample(self, rng: np.random.Generator) -> ProductParameters:
        return ProductParameters({name: part.sample(rng) for name, part in self.parts.items()}, self.layout)

    def kl(self, prior: ProductPosterior) -> float:
        return sum(part.kl(prior.parts[name]) for name, part in self.parts.items())

    def log_partition(self) -> NDArray[np.float64]:
        return np.sum([part.log_partition() for part in self.parts.values()], axis=0)

    def log_density(self, parameters: ProductParameters) -> float:
        return sum(part.log_density(parameters.parts[name]) for name, part in self.parts.items())

    def counts(self, sums: ProductSums, values: Values) -> EmissionCounts | None:
        from subchain.emissions.collapsed.product import ProductCounts

        blocks = zip(self.parts.items(), self.layout.take_apart(values), strict=True)
        found = {name: part.counts(sums.parts[name], block) for (name, part), block in blocks}
        known = {name: part for name, part in found.items() if part is not None}
        return ProductCounts(known) if len(known) == len(found) else None


class Product(Emission):
    """Product of families: each part describes its own columns, and parts are independent given the state.

    Use it for tables whose columns are of several kinds. The parameters of a fitted model have the parts as attributes:
    `model.emission_.visit.rates`.

    Parameters
    ----------
    **families : Emission
        The parts by name, each with `columns` set to names or indices (a single part without `columns` takes all).
        Columns of no part are ignored. In a table of floating-point numbers, codes of a `Categorical` part are whole
        numbers, nan where missing.

    Examples
    --------
    >>> import numpy as np
    >>> from subchain.data import Sequences
    >>> from subchain.emissions import Bernoulli, Poisson, Product
    >>> data = Sequences(np.array([[3, 1], [0, 0]]), columns=["clicks", "paid"])
    >>> emission = Product(visit=Poisson(columns="clicks"), sale=Bernoulli(columns="paid"))
    >>> emission.prior(data, n_states=2, flat=False).mean().visit.rates
    array([[1.5],
           [1.5]])
    >>> emission.set_params(visit__shape=3.0).get_params()["visit__shape"]
    3.0
    """

    name: ClassVar[str] = "product"
    parameters_type = ProductParameters

    def __init__(self, **families: Emission) -> None:
        self.families = families
        self.columns = None

    @property
    def frozen(self) -> bool:
        """Whether all parts keep the parameters of the start."""
        return all(family.frozen is True for family in self.families.values())

    def prepare(self, data: Sequences) -> Sequences:
        return data

    def describes(self, parameters: Any) -> bool:
        if not super().describes(parameters) or list(parameters.parts) != list(self.families):
            return False
        return all(family.describes(parameters.parts[name]) for name, family in self.families.items())

    def sized_as(self, parameters: Any) -> Product:
        return Product(**{name: part.sized_as(parameters.parts[name]) for name, part in self.families.items()})

    def check_start(self, prior: Any, parameters: Any) -> None:
        for name, part in self.families.items():
            with in_part(name):
                part.check_start(prior.parts[name], parameters.parts[name])

    @property
    def em_only(self) -> bool:  # type: ignore[override]
        """Whether only EM can learn one of the parts."""
        return any(family.em_only for family in self.families.values())

    @property
    def has_frozen(self) -> bool:
        return any(family.has_frozen for family in self.families.values())

    def freeze(self, prior: Any, start: Any) -> ProductPosterior:
        """Return the prior with frozen parts replaced by point masses on their parameters of the start."""
        parts = {name: self.families[name].freeze(part, start.parts[name]) for name, part in prior.parts.items()}
        return dataclasses.replace(prior, parts=parts)

    @staticmethod
    def from_parameters(*, columns: Mapping[str, int | Iterable[int]], **parts: Parameters) -> ProductParameters:
        """Build parameters from those of the parts, and the indices of each part's columns.

        Examples
        --------
        >>> from subchain.emissions import Categorical, Poisson, Product
        >>> a, b = Poisson.from_parameters([1.0, 9.0]), Categorical.from_parameters([[0.5, 0.5], [0.9, 0.1]])
        >>> Product.from_parameters(a=a, b=b, columns={"a": 1, "b": 0})["a"].rates
        array([[1.],
               [9.]])
        """
        if set(columns) != set(parts) or not parts:
            raise InputError(f"columns are given for {sorted(columns)}, but the parts are {sorted(parts)}.")
        sizes = {name: part.n_states for name, part in parts.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(f"the parts of a Product must have the same number of states, not {sizes}.")
        slots = {name: np.atleast_1d(np.asarray(columns[name], dtype=np.int64)) for name in parts}
        check_disjoint(slots)
        return ProductParameters(dict(parts), Layout.of(slots.values(), 1 + max(int(s.max()) for s in slots.values())))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parts by name and, if `deep`, their settings as `name__setting`."""
        params: dict[str, Any] = dict(self.families)
        if deep:
            for name, family in self.families.items():
                params.update({f"{name}__{key}": value for key, value in family.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Replace parts (`name=Family()`) or settings of parts (`name__setting=value`)."""
        for key in sorted(params, key=lambda key: "__" in key):  # whole parts first, then settings inside them
            name, _, setting = key.partition("__")
            if name not in self.families:
                raise unknown_name("part", name, self.families)
            if setting:
                self.families[name].set_params(**{setting: params[key]})
            else:
                self.families[name] = params[key]
        return self

    def check(self, data: Sequences) -> None:
        for name, family, columns in self._assigned(data):
            with in_part(name):
                family.check(view(data, family, columns))

    def check_against(self, data: Sequences, parameters: ProductParameters) -> None:
        layout = parameters.layout
        if data.n_features != layout.n_columns:
            raise InputError(
                f"the data have {data.n_features} columns, but the model was made for {layout.n_columns}; "
                "give the columns that it was trained on, in the same order."
            )
        for (name, part), columns in zip(parameters.parts.items(), layout.slots(), strict=True):
            family = self.families[name]
            with in_part(name):
                if data.columns is not None and not np.array_equal(data.column_indices(family.columns), columns):
                    raise InputError(
                        f"columns {family.columns!r} are not at positions {columns.tolist()}, where they were in the "
                        "data that the model was made from; give the columns in the same order."
                    )
                family.check_against(view(data, family, columns), part)

    @classmethod
    def for_parameters(cls, parameters: ProductParameters) -> Self:
        slots = zip(parameters.parts.items(), parameters.layout.slots(), strict=True)
        return cls(**{name: family_of(part).set_params(columns=columns.tolist()) for (name, part), columns in slots})

    def prior(self, data: Sequences, n_states: int, *, flat: bool) -> ProductPosterior:
        parts: dict[str, Posterior] = {}
        assigned = self._assigned(data)
        for name, family, columns in assigned:
            with in_part(name):
                parts[name] = family.prior(view(data, family, columns), n_states, flat=flat)
        return ProductPosterior(parts, Layout.of([columns for _, _, columns in assigned], data.n_features))

    def features(self, data: Sequences, index: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return the parts' features side by side, each column divided by its standard deviation: units differ."""
        found = [family.features(view(data, family, columns), index) for _, family, columns in self._assigned(data)]
        tables = [table for table in found if table is not None]
        if not tables:
            return None
        table = np.hstack(tables)
        spread = table.std(axis=0)
        return np.asarray(table / np.where(spread > 0.0, spread, 1.0))

    def random_sums(
        self, data: Sequences, reference: Likelihood, index: NDArray[np.int64], rng: np.random.Generator
    ) -> ProductSums:
        """Return the random sums of each part."""
        likelihoods: dict[str, Likelihood] = reference.parts  # type: ignore[attr-defined]
        return ProductSums(
            {
                name: family.random_sums(view(data, family, columns), likelihoods[name], index, rng)
                for name, family, columns in self._assigned(data)
            }
        )

    def unseen_sums(
        self, data: Sequences, reference: Likelihood, index: NDArray[np.int64], rng: np.random.Generator
    ) -> ProductSums | None:
        """Return those of the parts; None if no part has any, or `index` has all observations."""
        if len(index) == data.n_observations and self.features(data, index[:1]) is not None:
            return None
        likelihoods: dict[str, Likelihood] = reference.parts  # type: ignore[attr-defined]
        found = {
            name: family.unseen_sums(view(data, family, columns), likelihoods[name], index, rng)
            for name, family, columns in self._assigned(data)
        }
        if all(sums is None for sums in found.values()):
            return None
        return ProductSums({name: likelihoods[name].zeros() if sums is None else sums for name, sums in found.items()})

    def _assigned(self, data: Sequences) -> list[tuple[str, Emission, NDArray[np.int64]]]:
        """List the name, family and column indices of every part; raise if they are invalid or overlap."""
        check_families(self.families)
        slots = {}
        for name, family in self.families.items():
            with in_part(name):
                slots[name] = data.column_indices(family.columns)
        check_disjoint(slots)
        return [(name, family, slots[name]) for name, family in self.families.items()]
