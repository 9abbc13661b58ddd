"""One call of `fit`: checks and conversion of its arguments, and the starting points of its runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from subchain.core.frozen import freezes, frozen_states
from subchain.data import Evidence, HoldOut, Sequences, as_sequences, as_sequences_like, empty_columns
from subchain.data.annotations import Annotations
from subchain.data.digest import digest
from subchain.data.excerpts import excerpts
from subchain.data.held_out import with_missing
from subchain.data.mapped import intact
from subchain.data.sequences import require_observations
from subchain.data.unseen import without_unseen
from subchain.emissions import Emission, Parameters, Product
from subchain.emissions.choice import coded_numbers, emission_for
from subchain.emissions.families import AUTO
from subchain.emissions.frozen import PartlyFrozen
from subchain.emissions.moments import RealEmission
from subchain.engines import resolve_engine
from subchain.engines.statistics import HMMStatistics
from subchain.errors import InputError, unknown_name
from subchain.inference import ALGORITHMS, SVI, Algorithm, resolve_inference
from subchain.inference.run.chains import ChainProblem
from subchain.inference.run.loop import Known, RunState
from subchain.inference.run.trace import Trace
from subchain.inference.run.training import TrainingMarginals, contents_of, knowledge_of
from subchain.inference.run.validation import Validation
from subchain.inference.search.exchange import ExchangeSearch
from subchain.inference.search.search import StateSearch
from subchain.inference.start.kinds import kinds_of_runs
from subchain.inference.start.race import race
from subchain.inference.start.short_runs import short_run, short_settings
from subchain.inference.start.stages import order_of_states
from subchain.inference.start.starts import STARTS, start_statistics
from subchain.inference.stochastic.lengths import measure
from subchain.inference.stochastic.settings import Stochastic
from subchain.models.fitted import Fitted
from subchain.models.settings import describe
from subchain.numerics.seeds import seed_sequence
from subchain.structures.chain.local_starts import LOCAL_STARTS, check_drawable, local_statistics
from subchain.structures.chain.minibatches import needs_trial
from subchain.structures.chain.model import HMMPoint, HMMPosterior
from subchain.structures.chain.structure import Chains
from subchain.structures.chain.validation import HeldOutPositions, HeldOutSequences, require_seen
from subchain.transitions import FrozenChain, TransitionPrior, UnsuitedPriorError, resolve_transition
from subchain.transitions.banded_rows import with_matrix
from subchain.transitions.base import ChainLaw, ChainPosterior
from subchain.transitions.final import EndingChain, closed, learns_ends
from subchain.transitions.hdp.hierarchy import hierarchy_of, learns_top
from subchain.transitions.low_rank import LowRankChain, LowRankDirichlet

Array = NDArray[np.float64]
#: With more positions than this, init="auto" does not draw marginals position by position.
MANY_POSITIONS = 5_000_000
#: Most restarts.
MOST_RUNS = 1_000_000


class FitCall:
    """Checked arguments of one call of `fit`; the arguments are those of `HMM.fit`."""

    def __init__(
        self,
        model: Any,
        x: Any,
        annotations: Annotations = Annotations(),  # noqa: B008 (a tuple)
        validation: Any = None,
        entropy: int | None = None,
    ) -> None:
        self.model = model
        self.emission: Emission
        if isinstance(model.n_states, bool) or not isinstance(model.n_states, (int, np.integer)) or model.n_states < 1:
            raise InputError(f"n_states must be a whole number of at least 1, not {model.n_states!r}.")
        if not isinstance(model.n_init, (int, np.integer)) or not 1 <= model.n_init <= MOST_RUNS:
            raise InputError(f"n_init must be a whole number from 1 to {MOST_RUNS:,}, not {model.n_init!r}.")
        self.algorithm = resolve_inference(model.inference)
        self.algorithm.check()
        self.start_point = self._given_start(int(model.n_states))
        self.choice = ""
        annotations, validation = self._read(x, annotations, validation)
        with intact(self.raw.file, self.data.file):
            self._prepare(annotations, validation, entropy)

    def _prepare(self, annotations: Annotations, validation: Any, entropy: int | None) -> None:
        """Make the problem and the seeds of the runs."""
        model, n_states = self.model, int(self.model.n_states)
        self.transition = _suited(resolve_transition(model.transition), self.algorithm)
        self._check_frozen()
        self.knowledge = list(annotations.of_states.values())
        self._check_observed()
        flat = self.algorithm.flat
        proper = self.emission.prior(self.data, n_states, flat=False)
        self.proper, likely = HMMPosterior(self._chain(n_states, flat=False), proper), proper.mean()
        chain = self._chain(n_states, flat=flat)
        self.reference = HMMPoint(self.proper.chain.mean(), likely)
        self.empty = HMMStatistics(self.reference.chain.operator.zeros(), likely.zeros())
        prior = HMMPosterior(chain, self.emission.prior(self.data, n_states, flat=flat))
        self._check_start(prior)
        _check_states(prior.emission, likely, n_states)
        if prior.emission.is_learned and not self.algorithm.updates_hyperparameters:
            raise InputError(
                f"a learned concentration of the emissions needs vi, svi, cvi or scvi, not {self.algorithm.name}; give "
                "the concentration as a number."
            )
        if self.emission.names_states and hierarchy_of(chain) is not None:
            raise InputError(
                f"{type(self.emission).__name__} gives each state its group, so their number cannot be learned: use "
                "transition=Dirichlet() instead of HDP()."
            )
        engine = resolve_engine(model.engine, model.n_jobs)
        weights = annotations.weights(self.data)
        whole = Chains(
            self.data,
            Evidence.build(self.data, n_states, *annotations[:3], n_symbols=getattr(likely, "n_categories", None)),
            None if (weights == 1.0).all() else weights,
            engine=engine,
        )
        held_out = self._hold_out(validation, whole, likely)
        self._end_sequences(whole, chain)
        is_exact = self.transition.exact and not prior.emission.is_learned
        search = self._search(whole, prior)
        files = [data.file for data in (self.raw, self.data, getattr(held_out, "data", self.data)) if data.file]
        files += [] if whole.evidence is None else whole.evidence.files
        self.problem = ChainProblem(whole, prior, is_exact, held_out, search, files)
        self.root = seed_sequence(model.random_state if entropy is None else entropy)
        self.seeds = self.root.spawn(int(model.n_init))
        self._freeze()

    def measure(self) -> None:
        """Measure what a stochastic algorithm leaves open, such as the length of subchains, by a short trial."""
        chains = self.problem.structure
        if isinstance(self.algorithm, Stochastic) and needs_trial(chains, self.algorithm):
            with self.problem.intact():
                measure(self.problem, self.algorithm, self.starts()[0]())

    def _search(self, whole: Chains, prior: HMMPosterior) -> StateSearch | None:
        """Return what looks for better states during a run: as many as before, unless the prior learns how many.

        There is none where states have meanings of their own: by evidence, by structural zeros, in a given start, and
        none where ends are learned, because counts of stretches do not tell where sequences end.
        """
        if not self.algorithm.search:
            return None
        if hierarchy_of(prior.chain) is not None:
            return StateSearch(whole, self.algorithm)
        has_meanings = whole.evidence is not None or whole.learns_ends or self.start_point is not None
        if has_meanings or int(self.model.n_states) == 1 or not self.transition.states_are_exchangeable:
            return None
        return ExchangeSearch(whole, self.algorithm, self.proper)

    def _read(self, x: Any, annotations: Annotations, validation: Any) -> tuple[Annotations, Any]:
        """Convert and check the data; if `init` is a model, with its vocabularies, columns and number of symbols.

        Sequences of weight zero are left out, so that nothing is learned, inferred or demanded from them; symbols that
        they alone hold are not in the vocabulary. Returns the annotations and the validation of the others.
        """
        start: Any = self.model.init if self.start_point is not None else None
        is_like_start = start is not None and (any(start.vocabularies_) or start.columns_ is not None)
        if is_like_start:
            raw = as_sequences_like(x, start.vocabularies_, start.columns_, start.grouped_by_)
        else:
            raw = as_sequences(x)
        with raw.intact():
            return self._take(raw, is_like_start or isinstance(x, Sequences), annotations, validation)

    def _take(self, raw: Sequences, is_fixed: bool, annotations: Annotations, validation: Any) -> tuple[Any, Any]:
        """Set the data to what counts, and return its annotations and validation; `is_fixed` keeps the vocabulary."""
        raw = self._choose(raw)
        counts = annotations.weights(raw) > 0.0
        if not counts.all():
            annotations = annotations.take(raw, counts)
            validation = validation.take(raw, counts) if isinstance(validation, HoldOut) else validation
            left = require_observations(raw[counts])
            raw = left if is_fixed else without_unseen(left, raw)
        self.raw, self.data = raw, self.emission.prepare(raw)
        if self.start_point is None:
            self.emission.check(excerpts(self.data) if isinstance(self.algorithm, Stochastic) else self.data)
        else:
            self.emission = self.emission.sized_as(self.start_point.emission)
            self.emission.check_against(self.data, self.start_point.emission)
        return annotations, validation

    def _choose(self, raw: Sequences) -> Sequences:
        """Set the family, chosen by the data if it was left open, and settings that depend on it.

        Returns the data as the family takes them.
        """
        model = self.model
        if self.start_point is not None and isinstance(model.emission, str) and model.emission == AUTO:
            self.emission = model.init.family_
        else:
            self.emission, self.choice = emission_for(model.emission, raw)
        if self.start_point is not None and not isinstance(self.start_point.emission, self.emission.parameters_type):
            raise InputError(
                f"init emits {type(self.start_point.emission).__name__}, but emission={self.emission!r} "
                f"needs {self.emission.parameters_type.__name__}."
            )
        self.algorithm = self.algorithm.suited_to(self.emission)
        if self.emission.em_only and not self.algorithm.flat:
            raise InputError(
                f"{self.emission!r} can be learned by EM only, because its parameters have no posterior; "
                f"inference={self.algorithm.name!r} needs one. Use inference='em', or EM(batch=...) for large data."
            )
        return coded_numbers(self.emission, raw)

    def _chain(self, n_states: int, *, flat: bool) -> ChainPosterior:
        """Return the prior of the chain, with a dense transition matrix if the algorithm needs one."""
        chain = self.transition.prior(n_states, flat=flat)
        return with_matrix(chain, type(self.algorithm).__name__) if self.algorithm.needs_matrix else chain

    def _hold_out(self, validation: Any, whole: Chains, likely: Parameters) -> Validation | None:
        """Return the scorer of held-out data; held-out positions of the training data become missing in `whole`."""
        if validation is None:
            return None
        if not isinstance(validation, HoldOut):
            return HeldOutSequences(whole.engine, self._like_training(validation))
        positions = validation.positions(self.data)
        values = np.take(self.data.values, positions, axis=0)
        seen = require_seen(likely, values)
        positions, values = positions[seen], values[seen]
        keeps_codes = not isinstance(self.emission, (RealEmission, Product))
        self.data = whole.data = with_missing(self.data, positions, codes=keeps_codes)
        return HeldOutPositions(whole.engine, self.data, whole.evidence, positions, values)

    def _end_sequences(self, whole: Chains, chain: ChainPosterior) -> None:
        """Add what the prior says of the ends of sequences to the evidence, or have it learned."""
        frozen = self.transition.frozen is True
        whole.learns_ends = learns_ends(chain) and not frozen
        if whole.learns_ends and not self.algorithm.learns_ends:
            raise InputError(
                "final='learned' needs an algorithm that sees whole sequences under drawn or estimated parameters: "
                f"EM(), VI() or Gibbs(block='sequence', parameters='sampled'), not {self.algorithm!r}. Use one of "
                "these, or give the states that sequences end in, final=[...]."
            )
        if not whole.learns_ends:
            law = self._frozen_chain(chain) if frozen else self.reference.chain
            whole.evidence = HMMPoint(law, self.reference.emission).evidence(whole.data, whole.evidence)

    def _frozen_chain(self, prior: ChainPosterior) -> ChainLaw:
        """Return the chain of the start, with the ends that the prior gives unless the start has its own."""
        assert self.start_point is not None, "a frozen chain is that of a given start"
        chain = self.start_point.chain
        return chain if isinstance(chain, EndingChain) else closed(prior, chain)

    def _like_training(self, x: Any) -> Sequences:
        data = self.emission.prepare(as_sequences_like(x, self.raw.vocabularies, self.raw.columns, self.raw.grouped_by))
        self.emission.check_against(data, self.reference.emission)
        return data

    def _check_observed(self) -> None:
        """Raise an error if all observations are missing and there is no evidence; warn about empty columns."""
        empty = empty_columns(self.data.values)
        if len(empty) == self.data.n_features and all(known is None for known in self.knowledge):
            raise InputError(
                "all observations are missing (nan, or -1 in integer data); there is nothing to learn from. Check how "
                "the data were read."
            )
        if empty:
            names = [str(column if self.data.columns is None else self.data.columns[column]) for column in empty]
            what = f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"
            warnings.warn(f"{what} missing everywhere; their posterior is the prior.", stacklevel=4)

    def _given_start(self, n_states: int) -> HMMPoint | None:
        init = self.model.init
        if isinstance(init, str):
            if init not in (*STARTS, *LOCAL_STARTS):
                raise unknown_name("start", init, (*STARTS, *LOCAL_STARTS))
            return None
        if not isinstance(init, Fitted):
            known = ", ".join(map(repr, (*STARTS, *LOCAL_STARTS)))
            raise InputError(f"init must be one of {known} or a fitted HMM, not {init!r}.")
        point = init._point()
        if len(point.chain.initial) != n_states:
            raise InputError(f"init has {len(point.chain.initial)} states, but the model has n_states={n_states}.")
        return point

    def _check_start(self, prior: HMMPosterior) -> None:
        """Raise an `InputError` if the runs cannot begin with the parameters of a given start."""
        if self.start_point is not None:
            self.emission.check_start(prior.emission, self.start_point.emission)
            self.transition.check_start(self.start_point.chain)

    def _check_frozen(self) -> None:
        """Raise an `InputError` if something is frozen and no parameters are given to keep."""
        if self.start_point is None and (self.emission.has_frozen or freezes(self.transition.frozen)):
            what = self.emission if self.emission.has_frozen else self.transition
            raise InputError(
                f"{what!r} keeps the parameters of a given model, but init={self.model.init!r} gives none; set init= "
                "to a fitted model, or to HMM.from_parameters(...)."
            )

    def _freeze(self) -> None:
        """Fix frozen components, or states, at the parameters of the given start, for all restarts."""
        start, prior = self.start_point, self.problem.prior
        if start is None:
            return
        chain: Any = prior.chain
        kept = frozen_states(self.transition.frozen, prior.mean().n_states, type(self.transition).__name__)
        if kept.all():
            chain = FrozenChain(self._frozen_chain(chain))
        elif kept.any():
            chain = chain.with_given_rows(kept, start.chain)
        emission: Any = self.emission.freeze(cast(Any, prior.emission), start.emission)
        if isinstance(emission, PartlyFrozen) and self.transition.searches:
            raise InputError(
                "states that are frozen cannot be merged or split: set HDP(merges=False, splits=False), or leave "
                "frozen out."
            )
        self.problem.prior = HMMPosterior(chain, emission)

    def starts(self) -> list[Callable[[], RunState]]:
        """Return a function for each restart that creates its initial state."""
        if self.start_point is not None:
            point = self.start_point
            seed = _number(self.seeds[0])
            return [lambda: RunState(Known(None, point), seed=seed)]
        return [partial(self._guess, kinds, seed) for kinds, seed in zip(self._kinds(), self.seeds, strict=True)]

    def _kinds(self) -> Iterable[tuple[str, ...]]:
        """Return the kinds of starts of each restart; several of them race.

        With "auto" symbols with evidence on their states begin with drawn marginals.
        """
        init, n_runs = self.model.init, len(self.seeds)
        if init != "auto":
            return [(init,)] * n_runs
        has_distances = self.emission.features(self.data, np.arange(1)) is not None
        few = self.data.n_observations <= MANY_POSITIONS
        are_known = self.emission.names_states or any(given is not None for given in self.knowledge)
        is_dense = not isinstance(self.reference.chain, LowRankChain)  # these draw counts of all pairs of states
        if are_known and few and is_dense and not has_distances:
            return [("posteriors",)] * n_runs
        if hierarchy_of(self.problem.prior.chain) is not None:
            return [("kmeans",)] * n_runs
        is_acyclic = order_of_states(self.reference.chain.operator) is not None
        evidence = self.problem.structure.evidence
        is_labelled = evidence is not None and len(evidence.known()[0]) > 0
        return kinds_of_runs(
            n_runs, self.data.n_observations, has_distances=has_distances, is_acyclic=is_acyclic,
            is_labelled=is_labelled,
        )  # fmt: skip

    def _guess(self, kinds: tuple[str, ...], seed: np.random.SeedSequence) -> RunState:
        """Return an initial state from guessed statistics: of the one kind, or of the winner of a race."""
        rng, number, memory, init = np.random.default_rng(seed), _number(seed), {}, kinds[0]
        starts = {kind: partial(self._statistics, kind, rng, number) for kind in kinds}
        if len(kinds) > 1:
            init, statistics = race(self.problem.structure, self.proper, starts, rng)
        else:
            statistics = starts[init]()
        if init in LOCAL_STARTS:
            memory["local start"] = np.array(LOCAL_STARTS.index(init))
        point, _ = self.algorithm.point(self.problem.prior.update(statistics), statistics, None)
        return RunState(Known(statistics, point, memory), Trace(start=init), seed=number)

    def _statistics(self, kind: str, rng: np.random.Generator, number: int) -> HMMStatistics:
        """Return the statistics of a start."""
        evidence, weights = self.problem.structure.evidence, self.problem.structure.weights
        if kind == "stochastic":
            problem = ChainProblem(self.problem.structure, self.proper)
            algorithm = SVI(**short_settings(int(self.data.lengths.max())), search=False)
            return short_run(problem, algorithm, self._statistics("kmeans", rng, number), number)
        if kind not in LOCAL_STARTS:
            return start_statistics(self.data, self.emission, self.reference, kind, rng, evidence)
        if self.algorithm.flat:  # transitions that were not drawn have probability zero
            check_drawable(kind, self.reference.chain)
        found = local_statistics(self.data, self.reference.emission, kind, number, evidence, weights)
        chain = self.proper.chain
        if isinstance(chain, LowRankDirichlet):
            found.chain = chain.start(found.chain)
        return found

    def marginals(self, state: RunState) -> TrainingMarginals | None:
        """Return the posterior marginals of the training positions, if the run has kept them."""
        found = self.algorithm.marginals(self.problem, state)
        if found is None:
            return None
        known = knowledge_of(digest(self.knowledge))
        with self.problem.intact():
            return TrainingMarginals(*found, contents_of(self.data), known, int(self.model.n_states))

    @property
    def numbers_are_free(self) -> bool:
        """Whether states may be sorted by occupancy: the prior is infinite, and no evidence refers to their numbers."""
        chain: Any = self.problem.prior.chain
        is_open = learns_top(chain) and not isinstance(self.reference.chain, EndingChain)
        is_open = is_open and bool((chain.concentrations()[1] > 0.0).all())
        return is_open and all(known is None for known in self.knowledge)

    def identity(self) -> dict[str, Any]:
        """Return the settings and fingerprints that must be equal for a checkpoint to be resumed."""
        model = self.model
        return {
            "data": self.data.fingerprint(),
            "n_states": int(model.n_states),
            "emission": describe(self.emission, model.n_states),
            "transition": describe(self.transition, model.n_states),
            "inference": _described(self.algorithm.identity(), model.n_states),
            "n_init": int(model.n_init),
            "random_state": None if model.random_state is None else digest(self.seeds[0].generate_state(4)),
            "init": model.init if isinstance(model.init, str) else digest(model.init._point().arrays()),
            "sample_weight": digest(self.problem.structure.weights),
            "knowledge of the states": digest(self.knowledge),
            "validation": digest(None if self.problem.validation is None else self.problem.validation.contents()),
        }


def _suited(prior: TransitionPrior, algorithm: Algorithm) -> TransitionPrior:
    """Return the prior in the form that the algorithm needs; an error names the algorithms that would suit it."""
    try:
        return prior.suited_to(algorithm.hierarchy_treatment)
    except UnsuitedPriorError as error:
        names = [name for name, kind in ALGORITHMS.items() if kind.hierarchy_treatment in error.treatments]
        raise InputError(
            f"{error.need} inference={algorithm.name!r} does not; use inference={' or '.join(map(repr, names))}, or "
            f"{error.remedy}."
        ) from None


def _described(settings: dict[str, Any], n_states: int) -> dict[str, Any]:
    return {name: describe(value, n_states) for name, value in settings.items()}


def _number(seed: np.random.SeedSequence) -> int:
    """Return a seed as one integer, for random numbers during a run."""
    return int(seed.generate_state(1, np.uint64)[0])


def _check_states(prior: Any, parameters: Parameters, n_states: int) -> None:
    """Raise an `InputError` if arrays of a family do not run over the states as their class declares.

    Such a family could be fitted, but its model files could not be read.
    """
    for record in (prior, parameters, parameters.zeros()):
        try:
            record.check_states(n_states)
        except ValueError as error:
            raise InputError(
                f"{type(record).__name__} of the emissions: {error}. The first axis should run over states; declare an "
                "array that all states share with states_on() of subchain.core.records, and one that has states on "
                "another axis with states_on(axis)."
            ) from None
