"""Fits with fixed seeds, one table for the program that stores their results and for the tests that repeat them.

Everything here goes through the public interface, `from subchain import ...`, and through numpy. So the table stays as
it is when modules of the package are moved or renamed. The data are drawn here too; `fingerprint` tells a change of the
data (another version of numpy) from a change of the package.

A result that changes on purpose gets a reason in its line of the table, `changed="..."`. Then
`tests/golden/make_fits.py` stores the new result together with the reason; without a reason it refuses to.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from fit_data import FAMILIES, draw

from subchain import (
    CVI,
    EM,
    HDP,
    HMM,
    SCVI,
    SVI,
    VI,
    Beam,
    Buffer,
    Categorical,
    Dirichlet,
    Gaussian,
    Gibbs,
    GrowBuffer,
    Guards,
    HoldOut,
    LowRank,
    Stationary,
    TagDictionary,
    banded,
    cyclic,
    left_right,
)

# ---- what is known of the states -------------------------------------------------------------------------------------


def _some_states(paths: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """The state of every fifth position."""
    return [np.where(np.arange(len(path)) % 5 == 0, path, -1) for path in paths]


def _soft(paths: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """Log weights that favour the true state a little."""
    return [np.where(np.arange(3) == path[:, None], 0.0, -0.5) for path in paths]


def _two_of_three(paths: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """Legal states of each position: the true one and the next."""
    return [(np.arange(3) == path[:, None]) | (np.arange(3) == (path[:, None] + 1) % 3) for path in paths]


def _weights(paths: tuple[np.ndarray, ...]) -> np.ndarray:
    return 0.5 + np.arange(len(paths)) % 3


DICTIONARY = TagDictionary(
    {"the": "D", "a": {"D": 5, "N": 1}, "dog": "N", "cat": ["N", "V"], "run": ["N", "V"]}, tags=["D", "N", "V"]
)


LEGAL = {0: [0], 1: [1], 2: [2], 3: [0, 1], 4: [0, 2]}


#: Short lists: a pass visits legal states only where they are at most three tenths of all states.
FEW = {0: [0, 1], 1: [2, 3], 2: [4, 5], 3: [6], 4: [7], 5: [6, 7]}


def _given_model(family: str) -> HMM:
    """A model whose parameters a run starts from."""
    initial, transition = np.full(3, 1.0 / 3.0), np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    if family == "categorical":
        rows = np.full((3, 6), 0.1)
        rows[range(3), range(3)] = 0.5
        return HMM.from_parameters(initial, transition, Categorical.from_parameters(rows))
    means = np.array([[0.5, 0.5], [2.0, -0.5], [0.5, 3.0]])
    covariances = np.tile(2.0 * np.eye(2), (3, 1, 1))
    return HMM.from_parameters(initial, transition, Gaussian.from_parameters(means, covariances))


# ---- cases -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Case:
    """One fit.

    Attributes
    ----------
    name : unique
    family, shape : the data, see `draw`
    inference : the algorithm
    transition, n_states, emission, settings : what else the model is given; `emission` replaces the family's own
    known : further arguments of `fit`; functions are called with the hidden paths, a tuple of one array per sequence
    batches : how the data are learned: None by `fit`; else the first sequences by `fit` and the rest by `partial_fit`
        with these arguments
    names : names of the states, set after the fit
    file : whether the model is also kept as a file
    plain : whether the run begins with k-means (drawn counts for symbols) and does not search for better states, as
        by default before there were races of starts and searches at a fixed number of states
    changed : why the stored result is not that of the first commit that stored it
    rounded : why the course of the run differs between processors; only its end is compared, to six digits
    """

    name: str
    family: str
    shape: str
    inference: Any
    transition: Any = None
    n_states: int = 3
    emission: Any = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    known: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    batches: Mapping[str, Any] | None = None
    names: tuple[str, ...] | None = None
    file: bool = False
    plain: bool = True
    changed: str = ""
    rounded: str = ""

    def model(self, **settings: Any) -> HMM:
        """The model, not fitted yet."""
        emission = FAMILIES[self.family][1]() if self.emission is None else self.emission
        given = {"random_state": 5, "n_jobs": 1, "progress": False} | dict(self.settings) | settings
        if given.get("init") == "given":
            given["init"] = _given_model(self.family)
        inference = self.inference
        if self.plain and not isinstance(self.transition, HDP):
            draws = self.family in ("categorical", "words") and {"allowed", "evidence", "states"} & set(self.known)
            given.setdefault("init", "auto" if draws else "kmeans")
            if "search" in inference.get_params(deep=False):
                inference = copy.copy(inference).set_params(search=False)
        return HMM(self.n_states, emission, self.transition, inference, **given)

    @property
    def data(self) -> Any:
        return draw(self.family, self.shape)[0]

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `fit` beside the data."""
        paths = draw(self.family, self.shape)[1]
        return {name: value(paths) if callable(value) else value for name, value in self.known.items()}

    @property
    def knowledge(self) -> dict[str, Any]:
        """Those of them that say something of the states; all other methods take them too."""
        return {name: value for name, value in self.arguments.items() if name in ("allowed", "states", "evidence")}

    def fit(self, **settings: Any) -> HMM:
        """Fit the model; whether a short run has converged does not matter here."""
        model = self.model(**settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.batches is None:
                model.fit(self.data, **self.arguments)
            else:
                first, *others = _pieces(self.data)
                model.fit(first, **self.arguments)
                for number, piece in enumerate(others):
                    model.partial_fit(piece, **(self.batches if number else self.batches | {"continues": False}))
        if self.names is not None:
            model.state_names_ = list(self.names)
        return model


def _pieces(x: Any) -> list[Any]:
    """Three parts of a chain, or of a number of sequences of equal length."""
    if not isinstance(x, tuple):
        return np.array_split(x, 3)
    values, lengths = x
    return [(part, [lengths[0]] * (len(part) // lengths[0])) for part in np.split(values, 3)]


_BY_UPDATES = "searches and hyperparameters of stochastic runs follow the updates that were done, not a limit"
_FEW = {"max_iter": 6, "tolerance": 0.0}


_STEPS = {"max_updates": 20, "report_every": 10}


_DRAWS = {"n_samples": 4, "burn_in": 4, "n_chains": 2}


_SUBCHAINS = {"length": 10, "batch": 6} | _STEPS


_MANY = {"length": 20, "batch": 10, "max_updates": 150, "report_every": 10}


_LEARNED = HDP("learned", "learned")


#: Why all samplers draw other states for the same seed.
_GENERATOR = "one generator of random numbers for all kernels, and one kernel for all families"


CASES: list[Case] = [
    # -- starts and searches as by default
    Case("em by default", "gaussian", "many", EM(max_iter=60), plain=False),
    Case("vi by default", "poisson", "chain", VI(max_iter=60), plain=False),
    Case(
        "cvi by default", "categorical", "many", CVI(max_iter=30), plain=False,
        changed="a run that begins to settle is searched once",
    ),
    Case("svi by default", "gaussian", "long chain", SVI(max_updates=800, batch=4, length=20), plain=False),
    Case("em by default, left-right", "gaussian", "many", EM(**_FEW), Dirichlet(mask=left_right), plain=False),
    # -- EM: families, shapes, knowledge, structure
    Case("em categorical", "categorical", "many", EM(**_FEW), file=True),
    Case("em gaussian", "gaussian", "many", EM(**_FEW), file=True),
    Case("em scalar", "scalar", "chain", EM(**_FEW)),
    Case("em diagonal", "diagonal", "many", EM(**_FEW), file=True),
    Case("em poisson", "poisson", "many", EM(**_FEW), file=True),
    Case("em bernoulli", "bernoulli", "many", EM(**_FEW), file=True),
    Case("em product", "product", "many", EM(**_FEW), file=True),
    Case("em until converged", "gaussian", "many", EM(max_iter=60, tolerance=1e-6)),
    Case("em long chain", "categorical", "long chain", EM(**_FEW)),
    Case("em ragged", "gaussian", "ragged", EM(**_FEW)),
    Case("em missing categorical", "categorical", "missing", EM(**_FEW)),
    Case("em missing gaussian", "gaussian", "missing", EM(**_FEW)),
    Case("em missing product", "product", "missing", EM(**_FEW)),
    Case("em weights", "categorical", "many", EM(**_FEW), known={"sample_weight": _weights}),
    Case("em weights poisson", "poisson", "many", EM(**_FEW), known={"sample_weight": _weights}),
    Case("em known states", "gaussian", "many", EM(**_FEW), known={"states": _some_states}),
    Case("em soft evidence", "poisson", "many", EM(**_FEW), known={"evidence": _soft}),
    Case("em legal states", "categorical", "many", EM(**_FEW), known={"allowed": LEGAL}),
    Case("em legal positions", "bernoulli", "many", EM(**_FEW), known={"allowed": _two_of_three}),
    Case("em few legal states", "categorical", "many", EM(**_FEW), n_states=8, known={"allowed": FEW}),
    Case("em left-right", "gaussian", "many", EM(**_FEW), Dirichlet(mask=left_right, initial=[1.0, 0.0, 0.0])),
    Case("em low rank", "categorical", "many", EM(**_FEW), LowRank(2), file=True),
    Case("em banded", "categorical", "chain", EM(**_FEW), Dirichlet(mask=banded), n_states=5),
    Case("em cyclic", "poisson", "chain", EM(**_FEW), Dirichlet(mask=cyclic)),
    Case("em sticky", "categorical", "many", EM(**_FEW), Dirichlet(1.5, stickiness=4.0)),
    Case(
        "em fixed transitions", "categorical", "many", EM(**_FEW),
        Dirichlet(fixed=np.array([[0.8, np.nan, np.nan], [np.nan] * 3, [0.1, 0.1, 0.8]])),
    ),
    Case("em stationary beginning", "gaussian", "many", EM(**_FEW), Dirichlet(initial="stationary"),
         changed="the step of EM climbs the likelihood of chains that begin in their stationary distribution"),
    Case("em restarts", "gaussian", "ragged", EM(**_FEW), settings={"n_init": 3}),
    Case("em from a model", "gaussian", "chain", EM(**_FEW), settings={"init": "given"}),
    Case("em random start", "gaussian", "many", EM(**_FEW), settings={"init": "random"}),
    Case("em context start", "diagonal", "long chain", EM(**_FEW), settings={"init": "context"}),
    Case("em frozen emissions", "gaussian", "many", EM(**_FEW), emission=Gaussian(frozen=True),
         settings={"init": "given"}, changed="frozen emissions need a given model, whose parameters they keep"),
    Case("em frozen chain", "gaussian", "many", EM(**_FEW), Dirichlet(frozen=True), settings={"init": "given"}),
    Case("em one state", "gaussian", "many", EM(**_FEW), n_states=1),
    Case("em more states than used", "categorical", "ragged", EM(**_FEW), n_states=11),
    Case(
        "em validation", "categorical", "many", EM(max_iter=12, tolerance=0.0, patience=3), n_states=8,
        known={"validation": HoldOut(0.1)},
    ),
    Case("em words", "words", "ragged", EM(**_FEW)),
    # -- EM over minibatches
    Case("online em sequences", "categorical", "many", EM(batch=4, length=None, **_STEPS), file=True),
    Case("online em subchains", "gaussian", "long chain", EM(batch=6, length=10, boundary=Stationary(), **_STEPS)),
    Case("online em buffer", "poisson", "long chain", EM(batch=6, length=10, boundary=Buffer(4), **_STEPS)),
    # -- VI
    Case("vi categorical", "categorical", "many", VI(**_FEW), file=True),
    Case("vi gaussian", "gaussian", "many", VI(**_FEW)),
    Case("vi scalar", "scalar", "chain", VI(**_FEW)),
    Case("vi diagonal", "diagonal", "many", VI(**_FEW)),
    Case("vi poisson", "poisson", "many", VI(**_FEW)),
    Case("vi bernoulli", "bernoulli", "many", VI(**_FEW)),
    Case("vi product", "product", "many", VI(**_FEW)),
    Case("vi long chain", "gaussian", "long chain", VI(**_FEW)),
    Case("vi ragged", "poisson", "ragged", VI(**_FEW)),
    Case("vi missing diagonal", "diagonal", "missing", VI(**_FEW)),
    Case("vi missing bernoulli", "bernoulli", "missing", VI(**_FEW)),
    Case("vi missing product", "product", "missing", VI(**_FEW)),
    Case("vi weights", "gaussian", "many", VI(**_FEW), known={"sample_weight": _weights}),
    Case("vi known states", "categorical", "many", VI(**_FEW), known={"states": _some_states}),
    Case("vi few legal states", "categorical", "many", VI(**_FEW), n_states=8, known={"allowed": FEW}),
    Case("vi priors", "gaussian", "many", VI(**_FEW), Dirichlet(0.3), emission=Gaussian(degrees=5.0)),
    Case(
        "vi sticky left-right", "diagonal", "chain", VI(**_FEW),
        Dirichlet(0.5, stickiness=2.0, mask=left_right(3, max_step=1)), file=True,
    ),
    Case("vi stationary beginning", "categorical", "many", VI(**_FEW), Dirichlet(0.5, initial="stationary")),
    Case("vi restarts", "categorical", "ragged", VI(**_FEW), settings={"n_init": 3}),
    Case("vi from a model", "categorical", "chain", VI(**_FEW), settings={"init": "given"}),
    Case("vi learned concentration", "categorical", "many", VI(**_FEW), emission=Categorical("learned")),
    Case(
        "vi learned concentration per symbol", "categorical", "many", VI(**_FEW),
        emission=Categorical("learned per symbol"), file=True,
    ),
    Case(
        "vi dictionary", "words", "many", VI(**_FEW), known={"allowed": DICTIONARY}, names=DICTIONARY.tags, file=True
    ),
    Case("vi states", "categorical", "many", VI(cluster="state", **_FEW), file=True),
    Case("vi states gaussian", "gaussian", "chain", VI(cluster="state", **_FEW)),
    Case("vi states legal", "categorical", "many", VI(cluster="state", **_FEW), known={"allowed": LEGAL}),
    Case("vi states missing", "poisson", "missing", VI(cluster="state", **_FEW)),
    Case("vi hdp", "categorical", "many", VI(**_FEW), HDP(), n_states=6, file=True),
    Case("vi hdp searches", "gaussian", "many", VI(max_iter=40, tolerance=1e-6), HDP(), n_states=6),
    Case("vi hdp sticky", "gaussian", "chain", VI(**_FEW), HDP(2.0, 1.0, stickiness=3.0), n_states=6),
    Case("vi hdp known top", "poisson", "many", VI(**_FEW), HDP(2.0, top="uniform"), n_states=4, file=True),
    Case("vi hdp sticks", "categorical", "many", VI(**_FEW), HDP(construction="sticks"), n_states=6, file=True),
    Case(
        "vi hdp sticks given", "diagonal", "chain", VI(**_FEW),
        HDP(2.0, 1.0, construction="sticks", stickiness=1.0, merges=False, splits=False), n_states=5,
    ),
    Case(
        "vi hdp splits", "poisson", "long chain", VI(max_iter=60, tolerance=1e-6), HDP(), n_states=8,
        settings={"init": "random"},
    ),
    Case(
        "vi hdp sticks searches", "gaussian", "many", VI(max_iter=60, tolerance=1e-6), HDP(construction="sticks"),
        n_states=8, rounded="two proposals of a search promise the same to the last digits",
    ),
    Case("vi batches", "categorical", "many", VI(**_FEW), batches={}, file=True),
    Case("vi batches of a chain", "gaussian", "chain", VI(**_FEW), batches={"continues": True, "total": 240.0}),
    # -- SVI
    Case("svi stationary", "categorical", "long chain", SVI(boundary=Stationary(), **_SUBCHAINS), file=True),
    Case("svi low rank", "categorical", "long chain", SVI(boundary=Stationary(), **_SUBCHAINS), LowRank(2), file=True),
    Case("svi buffer", "gaussian", "long chain", SVI(boundary=Buffer(4), **_SUBCHAINS), file=True),
    Case("svi growing buffer", "poisson", "long chain", SVI(boundary=GrowBuffer(limit=20), **_SUBCHAINS), file=True),
    Case("svi guards", "diagonal", "long chain", SVI(boundary=Guards(), **_SUBCHAINS), file=True),
    Case("svi sequences", "bernoulli", "many", SVI(length=None, batch=4, **_STEPS)),
    Case("svi auto length", "scalar", "long chain", SVI(batch=4, boundary=Stationary(), **_STEPS)),
    Case("svi anywhere", "categorical", "long chain", SVI(starts="anywhere", boundary=Buffer(3), **_SUBCHAINS)),
    Case("svi adaptive", "categorical", "long chain", SVI(adapt=True, boundary=Stationary(), **_SUBCHAINS)),
    Case("svi average", "product", "long chain", SVI(average=True, boundary=Stationary(), **_SUBCHAINS), file=True),
    Case("svi missing", "gaussian", "missing", SVI(boundary=Buffer(2), length=6, batch=4, **_STEPS)),
    Case("svi legal states", "categorical", "many", SVI(length=None, batch=4, **_STEPS), known={"allowed": LEGAL}),
    Case("svi weights", "categorical", "many", SVI(length=None, batch=4, **_STEPS), known={"sample_weight": _weights}),
    Case(
        "svi validation", "categorical", "long chain", SVI(boundary=Buffer(4), **_SUBCHAINS),
        known={"validation": HoldOut(0.1)},
    ),
    Case("svi mask", "gaussian", "long chain", SVI(boundary=Guards(), **_SUBCHAINS), Dirichlet(0.5, mask=cyclic)),
    Case("svi hdp", "gaussian", "long chain", SVI(boundary=Buffer(4), **_SUBCHAINS), HDP(), n_states=6,
         changed=_BY_UPDATES),
    Case(
        "svi hdp sticks", "categorical", "long chain", SVI(boundary=Buffer(4), **_SUBCHAINS),
        HDP(construction="sticks"), n_states=6, file=True,
        changed=_BY_UPDATES,
    ),
    Case(
        "svi hdp searches", "gaussian", "long chain", SVI(boundary=Buffer(4), **_MANY), HDP(), n_states=8,
        settings={"init": "random"},
        changed=_BY_UPDATES,
    ),
    Case("svi batches", "categorical", "many", SVI(length=None, batch=4, **_STEPS), batches={"total": 288.0}),
    # -- SCVI
    Case("scvi guards", "categorical", "long chain", SCVI(boundary=Guards(), **_SUBCHAINS), file=True),
    Case("scvi guards marginals", "gaussian", "long chain", SCVI(boundary=Guards("marginals"), **_SUBCHAINS)),
    Case("scvi sequences", "bernoulli", "many", SCVI(length=None, batch=4, **_STEPS)),
    Case("scvi buffer", "product", "long chain", SCVI(boundary=Buffer(4), **_SUBCHAINS)),
    Case("scvi many states", "categorical", "long chain", SCVI(boundary=Guards(), **_SUBCHAINS), n_states=12),
    Case("scvi hdp", "categorical", "long chain", SCVI(boundary=Guards(), **_SUBCHAINS), HDP(), n_states=6, file=True,
         changed=_BY_UPDATES),
    Case("scvi hdp gaussian", "gaussian", "long chain", SCVI(boundary=Guards(), **_SUBCHAINS), HDP(), n_states=6,
         changed=_BY_UPDATES),
    Case(
        "scvi hdp searches", "gaussian", "long chain", SCVI(boundary=Guards(), **_MANY), HDP(), n_states=8,
        settings={"init": "random"},
        changed=_BY_UPDATES,
    ),
    # -- CVI
    Case("cvi sequences", "categorical", "many", CVI(cluster="sequence", **_FEW), file=True),
    Case("cvi sequences gaussian", "gaussian", "many", CVI(cluster="sequence", **_FEW)),
    Case("cvi sequences together", "poisson", "many", CVI(cluster="sequence", cluster_size=4, **_FEW)),
    Case("cvi sequences shuffled", "categorical", "many", CVI(cluster="sequence", order="shuffled", **_FEW)),
    Case("cvi sequences batch", "bernoulli", "many", CVI(cluster="sequence", order="batch", **_FEW)),
    Case("cvi sequences not excluded", "categorical", "many", CVI(cluster="sequence", exclude=False, **_FEW)),
    Case("cvi sequences missing", "product", "missing", CVI(cluster="sequence", **_FEW)),
    Case("cvi sequences legal", "categorical", "many", CVI(cluster="sequence", **_FEW), known={"allowed": LEGAL}),
    Case(
        "cvi sequences few legal", "categorical", "many", CVI(cluster="sequence", **_FEW), n_states=8,
        known={"allowed": FEW},
    ),
    Case(
        "cvi dictionary", "words", "many", CVI(cluster="sequence", **_FEW), known={"allowed": DICTIONARY},
        names=DICTIONARY.tags, file=True,
    ),
    Case("cvi states", "categorical", "many", CVI(cluster="state", **_FEW), file=True),
    Case("cvi states gaussian", "gaussian", "chain", CVI(cluster="state", **_FEW), file=True),
    Case("cvi states diagonal", "diagonal", "chain", CVI(cluster="state", **_FEW)),
    Case("cvi states poisson", "poisson", "chain", CVI(cluster="state", **_FEW)),
    Case("cvi states bernoulli", "bernoulli", "chain", CVI(cluster="state", **_FEW)),
    Case("cvi states product", "product", "chain", CVI(cluster="state", **_FEW)),
    Case("cvi states missing", "gaussian", "missing", CVI(cluster="state", **_FEW)),
    Case(
        "cvi states plain", "categorical", "many",
        CVI("state", corrections=False, neighbour_weighting="probabilities", **_FEW),
    ),
    Case("cvi states few legal", "categorical", "many", CVI("state", **_FEW), n_states=8, known={"allowed": FEW}),
    Case("cvi subchains", "diagonal", "chain", CVI(cluster="subchain", length=10, **_FEW), file=True),
    Case("cvi subchains batch", "categorical", "chain", CVI(cluster="subchain", length=10, order="batch", **_FEW)),
    Case(
        "cvi subchains counts", "poisson", "chain",
        CVI(cluster="subchain", length=10, neighbour_weighting="counts", **_FEW),
    ),
    Case("cvi auto", "gaussian", "chain", CVI(**_FEW)),
    Case("cvi restarts", "categorical", "many", CVI(**_FEW), settings={"n_init": 2}),
    Case("cvi posteriors start", "categorical", "many", CVI(**_FEW), settings={"init": "posteriors"}),
    Case("cvi mask", "categorical", "many", CVI(**_FEW), Dirichlet(0.5, mask=cyclic)),
    Case("cvi learned concentration", "categorical", "many", CVI(**_FEW), emission=Categorical("learned")),
    Case("cvi hdp", "categorical", "many", CVI(**_FEW), HDP(), n_states=6, file=True),
    Case("cvi hdp searches", "gaussian", "many", CVI(max_iter=16, tolerance=1e-6), HDP(), n_states=6),
    Case("cvi hdp exact", "categorical", "many", CVI(**_FEW), HDP(1.0, 1.0, occurrence="exact"), n_states=4),
    Case("cvi hdp mean field", "categorical", "many", CVI(**_FEW), HDP(1.0, 1.0, occurrence="mean_field"), n_states=4),
    Case("cvi hdp sampling", "categorical", "many", CVI(**_FEW), HDP(1.0, 1.0, occurrence="sampling"), n_states=4),
    Case("cvi hdp states", "poisson", "chain", CVI(cluster="state", **_FEW), HDP(stickiness=1.0), n_states=5),
    # -- Gibbs
    Case("gibbs states", "categorical", "many", Gibbs("state", **_DRAWS), file=True),
    Case("gibbs states gaussian", "gaussian", "ragged", Gibbs("state", **_DRAWS), file=True),
    Case("gibbs states diagonal", "diagonal", "ragged", Gibbs("state", **_DRAWS)),
    Case("gibbs states poisson", "poisson", "ragged", Gibbs("state", **_DRAWS)),
    Case("gibbs states bernoulli", "bernoulli", "ragged", Gibbs("state", **_DRAWS), settings={"init": "states"}),
    Case("gibbs states product", "product", "ragged", Gibbs("state", **_DRAWS)),
    Case("gibbs states missing", "gaussian", "missing", Gibbs("state", **_DRAWS)),
    Case("gibbs states few legal", "categorical", "many", Gibbs("state", **_DRAWS), n_states=8, known={"allowed": FEW}),
    Case("gibbs states sticky", "categorical", "chain", Gibbs("state", **_DRAWS), Dirichlet(0.5, stickiness=2.0)),
    Case("gibbs annealed", "categorical", "many", Gibbs(annealing=(2.0, 1.0), thin=2, **_DRAWS)),
    Case("gibbs kept paths", "words", "ragged", Gibbs(keep_states=True, **_DRAWS), file=True),
    Case("gibbs sequences", "categorical", "many", Gibbs("sequence", **_DRAWS), file=True),
    Case("gibbs sequences gaussian", "gaussian", "ragged", Gibbs("sequence", **_DRAWS)),
    Case("gibbs sequences sampled", "categorical", "many", Gibbs("sequence", "sampled", **_DRAWS), file=True),
    Case("gibbs sequences sampled gaussian", "gaussian", "many", Gibbs("sequence", "sampled", **_DRAWS)),
    Case("gibbs sequences sampled product", "product", "missing", Gibbs("sequence", "sampled", **_DRAWS)),
    Case("gibbs sequences mask", "categorical", "many", Gibbs("sequence", "sampled", **_DRAWS), Dirichlet(mask=cyclic)),
    # -- Beam
    Case("beam", "categorical", "many", Beam(**_DRAWS), _LEARNED, n_states=6, file=True),
    Case("beam gaussian", "gaussian", "chain", Beam(**_DRAWS), HDP(2.0, 1.0, stickiness=1.0), n_states=6, file=True),
    Case("beam unlimited", "poisson", "many", Beam(max_states=None, **_DRAWS), _LEARNED, n_states=6),
    Case("beam legal states", "categorical", "many", Beam(**_DRAWS), _LEARNED, known={"allowed": LEGAL}),
]  # fmt: skip


CASES = [
    dataclasses.replace(case, changed=_GENERATOR) if isinstance(case.inference, (Gibbs, Beam)) else case
    for case in CASES
]


BY_NAME = {case.name: case for case in CASES}


assert len(BY_NAME) == len(CASES), "two cases have the same name"


# ---- results ---------------------------------------------------------------------------------------------------------

PARAMETERS = ("probabilities", "means", "covariances", "variances", "rates")


def emission_arrays(emission: Any, parts: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Parameters of the emissions by the names that users read."""
    found = {name: np.asarray(getattr(emission, name)) for name in PARAMETERS if hasattr(emission, name)}
    for part in parts:
        found |= {f"{part}.{name}": array for name, array in emission_arrays(emission[part]).items()}
    return found


def result(case: Case, model: HMM) -> dict[str, Any]:
    """What is compared of a fit: numbers and arrays by name."""
    parts = ("a", "b", "c") if case.family == "product" else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        marginals = model.predict_proba(case.data, **case.knowledge)
        found = {
            "objective": np.asarray(model.trace_.objective, dtype=np.float64),
            "validation": np.asarray(model.trace_.validation, dtype=np.float64),
            "runs": np.array([run.objective for run in model.runs_], dtype=np.float64),
            "score": model.score(case.data, **case.knowledge),
            "score of new data": model.score_sequences(draw(case.family, "new", 1)[0]),
            "initial": model.initial_,
            "transition": model.transition_,
            "occupancy": model.state_occupancy_,
            "marginals": (marginals[0] if isinstance(marginals, list) else marginals)[:3],
        }
    found |= {f"emission {name}": array for name, array in emission_arrays(model.emission_, parts).items()}
    if model.samples_ is not None:
        found |= {f"mean of sampled {name}": _mean_draw(model.samples_[name]) for name in ("log_joint", "occupancy")}
    return {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}


def _mean_draw(draws: np.ndarray) -> np.ndarray:
    """The mean over chains and draws; states that a draw does not have count as empty."""
    return np.nan_to_num(draws).mean(axis=(0, 1))
