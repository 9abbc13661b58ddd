"""Compiled counts of collapsed inference give the weights of each family's predictive distribution."""

import math
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from examples import example, punch
from numba import njit

from subchain import (
    CVI,
    HMM,
    VI,
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Dirichlet,
    Gaussian,
    Gibbs,
    Poisson,
    Product,
    Sequences,
)
from subchain.core.components import clone
from subchain.emissions.bernoulli import BetaTable
from subchain.emissions.collapsed.counts import EmissionCounts, PairCounts, TabledLogs
from subchain.emissions.collapsed.gamma_ratios import half_step, log_half_steps, log_rising
from subchain.emissions.collapsed.observations import real_rows, whole_rows
from subchain.emissions.diagonal_gaussian import NormalInverseGamma
from subchain.emissions.gaussian import NormalInverseWishart
from subchain.emissions.poisson import GammaRates
from subchain.emissions.product import ProductPosterior
from subchain.errors import ConvergenceWarning
from subchain.numerics.kernel_cache import KernelCache
from subchain.propagation.collapsed.pieces import visit_pieces
from subchain.propagation.collapsed.states import visit_states
from subchain.propagation.collapsed.verbs import add, weigh
from subchain.propagation.verbs import implements, kernel_for

N_STATES, N = 3, 24


@njit(error_model="numpy")
def add_all(counts, positions, states, amounts):
    for i in range(len(positions)):
        add(counts, positions[i], states[i], amounts[i])


@njit(error_model="numpy")
def weigh_all(counts, n, n_states):
    logs = np.empty((n_states, n))
    for k in range(n_states):
        for position in range(n):
            factor, log = weigh(counts, position, k)
            logs[k, position] = np.log(factor) + log
    return logs


def reals(rng, width, dtype=np.float64):
    mixing = np.eye(width) + 0.3 * rng.normal(size=(width, width))
    return (rng.normal(size=(N, width)) @ mixing + rng.normal(size=width)).astype(dtype)


def tall(rng):
    """Counts of which some are multiplied out and some are not, up to a million."""
    return rng.poisson(10.0 ** rng.uniform(-1.0, 6.0, (N, 2)))


def flags(rng, width):
    return (rng.random((N, width)) < rng.random(width)).astype(np.int64)


def mixed(rng):
    return np.column_stack((reals(rng, 2), rng.integers(0, 4, N), rng.poisson(3.0, N), flags(rng, 1)))


PRODUCT = Product(
    a=Gaussian(columns=[0, 1]),
    b=Categorical(n_categories=4, columns=2),
    c=Poisson(columns=3),
    d=Bernoulli(columns=4),
)
PER_STATE = np.array([[0.5, 1.0], [2.0, 0.3], [7.0, 40.0]])
CASES = {
    "gaussian of one column": (Gaussian(), lambda rng: reals(rng, 1)),
    "gaussian": (Gaussian(), lambda rng: reals(rng, 2)),
    "gaussian of three columns": (Gaussian(degrees=2.5), lambda rng: reals(rng, 3)),
    "gaussian, priors by state": (
        Gaussian(np.arange(12.0).reshape(3, 4), [0.1, 2.0, 9.0], [5.0, 8.0, 31.0], [1.0, 2.0, 0.1, 5.0]),
        lambda rng: reals(rng, 4),
    ),
    "gaussian, short floats": (Gaussian(), lambda rng: reals(rng, 2, np.float32)),
    "gaussian, whole numbers": (Gaussian(), lambda rng: rng.integers(-3, 4, (N, 2))),
    "gaussian, far away": (Gaussian(), lambda rng: reals(rng, 2) + 1e6),
    "diagonal": (DiagonalGaussian(), lambda rng: reals(rng, 4)),
    "diagonal, priors by state": (DiagonalGaussian(3.0, PER_STATE, PER_STATE, PER_STATE), lambda rng: reals(rng, 2)),
    "diagonal, far away": (DiagonalGaussian(), lambda rng: reals(rng, 2) + 1e6),
    "poisson": (Poisson(), lambda rng: rng.poisson(4.0, (N, 3))),
    "poisson, one column": (Poisson(), lambda rng: rng.poisson(4.0, N)),
    "poisson, short integers": (Poisson(), lambda rng: rng.poisson(4.0, (N, 2)).astype(np.int8)),
    "poisson, high": (Poisson(PER_STATE, 1.0 / PER_STATE), tall),
    "bernoulli": (Bernoulli(), lambda rng: flags(rng, 8)),
    "bernoulli, priors by state": (Bernoulli(PER_STATE, 1.0 / PER_STATE), lambda rng: flags(rng, 2)),
    "bernoulli, many columns": (Bernoulli(), lambda rng: flags(rng, 2000)),
    "product": (PRODUCT, mixed),
    "product of one": (Product(a=Poisson()), lambda rng: rng.poisson(4.0, (N, 2))),
}


def case(name, seed, *, with_holes):
    rng = np.random.default_rng([seed, len(name)])
    family, draw = CASES[name]
    values = draw(rng)
    if with_holes:
        values = holed(family, values, rng)
    data = Sequences(values)
    return family.prior(data, N_STATES, flat=False), data.values, rng


def holed(family, values, rng):
    """Entries missing; of vectors whose coordinates depend on each other, all or none."""
    punched = punch(values, rng)
    dependent = np.zeros(values.shape, dtype=bool)
    if isinstance(family, Gaussian):
        dependent[:] = True
    elif isinstance(family, Product) and "a" in family.families and isinstance(family.families["a"], Gaussian):
        dependent[:, :2] = True
    rows = rng.random(len(values)) < 0.2
    punched[dependent] = values[dependent]
    if values.dtype.kind == "f":
        punched[dependent & rows[:, None]] = np.nan
    return punched


def sums_of(prior, values, amounts):
    """The family's sums of observations that count so often in each state, (K, N)."""
    likelihood = prior.mean()
    sums = likelihood.zeros()
    likelihood.accumulate(values, amounts, sums)
    return sums


def apply_at_random(counts, amounts, rng, n_steps=200):
    """Add observations, and take out what had been added; `amounts` (K, N) follows."""
    positions, states = rng.integers(0, N, n_steps), rng.integers(0, N_STATES, n_steps)
    steps = rng.exponential(size=n_steps) * 10.0 ** rng.integers(-3, 3, n_steps)
    for i, place in enumerate(zip(states, positions, strict=True)):
        if rng.random() < 0.5:
            steps[i] = -amounts[place]
        amounts[place] += steps[i]
    add_all(counts.kernel, positions, states, steps)


@pytest.mark.parametrize("with_holes", [False, True], ids=["complete", "holes"])
@pytest.mark.parametrize("name", CASES)
def test_weights_are_those_of_the_predictive_distribution(name, with_holes):
    for seed in range(3):
        prior, values, rng = case(name, seed, with_holes=with_holes)
        amounts = np.where(rng.random((N_STATES, N)) < 0.7, rng.exponential(size=(N_STATES, N)), 0.0)
        counts = prior.counts(sums_of(prior, values, amounts), values)
        for _ in range(3):
            apply_at_random(counts, amounts, rng)
            found = weigh_all(counts.kernel, N, N_STATES)
            #: Far from zero the family's own predictive distribution loses digits, since its locations do.
            rounding = 1e-7 if "far" in name else 1e-10
            for sums, allowed in ((counts.sums(), rounding), (sums_of(prior, values, amounts), 30.0 * rounding)):
                expected = prior.update(sums).predictive().log_likelihood(values)
                np.testing.assert_allclose(found, expected, rtol=allowed, atol=allowed)


@pytest.mark.parametrize("family", [Gaussian(), DiagonalGaussian()], ids=["gaussian", "diagonal"])
def test_no_digits_are_lost_far_from_zero(family):
    rng = np.random.default_rng(0)
    near = np.round(1024.0 * reals(rng, 2)) / 1024.0
    amounts, tables = rng.exponential(size=(N_STATES, N)), []
    for values in (near, near + 2.0**20):
        prior = family.prior(Sequences(values), N_STATES, flat=False)
        counts = prior.counts(sums_of(prior, values, amounts), values)
        apply_at_random(counts, amounts.copy(), np.random.default_rng(1), 5_000)
        tables.append(weigh_all(counts.kernel, N, N_STATES))
    np.testing.assert_allclose(tables[0], tables[1], rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_sums_are_those_of_the_family(name):
    prior, values, rng = case(name, 0, with_holes=True)
    amounts = rng.exponential(size=(N_STATES, N))
    given = sums_of(prior, values, amounts)
    before = {key: array.copy() for key, array in given.arrays().items()}
    counts = prior.counts(given, values)
    apply_at_random(counts, amounts, rng)
    found = (counts.sums() - sums_of(prior, values, amounts)).arrays()
    size = max(1.0, float(np.nanmax(np.abs(np.asarray(values, dtype=float)))) ** 2)
    for key, array in found.items():
        if not key.endswith("origin"):
            np.testing.assert_allclose(array, 0.0, atol=1e-10 * size)
    for key, array in given.arrays().items():
        np.testing.assert_array_equal(array, before[key])


@pytest.mark.parametrize("name", CASES)
def test_what_is_taken_out_entirely_leaves_the_prior(name):
    prior, values, rng = case(name, 1, with_holes=False)
    amounts = 1e4 * rng.exponential(size=(N_STATES, N))
    counts = prior.counts(sums_of(prior, values, amounts), values)
    for k in range(N_STATES):
        add_all(counts.kernel, np.arange(N), np.full(N, k), -amounts[k])
    expected = prior.predictive().log_likelihood(values)
    np.testing.assert_allclose(weigh_all(counts.kernel, N, N_STATES), expected, rtol=1e-5)


def test_a_product_with_a_frozen_part():
    rng = np.random.default_rng(0)
    values = Sequences(mixed(rng)).values
    prior = PRODUCT.prior(Sequences(values), N_STATES, flat=False)
    prior.parts["c"] = Poisson(columns=3, frozen=True).freeze(
        prior.parts["c"], Poisson.from_parameters([1.0, 2.0, 9.0])
    )
    amounts = rng.exponential(size=(N_STATES, N))
    counts = prior.counts(sums_of(prior, values, amounts), values)
    assert counts.sums() is None
    assert {"a.sums.second", "b.totals", "d.sums.total"} < set(counts.memory())
    apply_at_random(counts, amounts, rng)
    expected = prior.update(sums_of(prior, values, amounts)).predictive().log_likelihood(values)
    np.testing.assert_allclose(weigh_all(counts.kernel, N, N_STATES), expected, rtol=1e-10)


def test_a_family_without_counts_has_none_in_a_product():
    from own_family import Exponential

    values = np.random.default_rng(0).exponential(size=(N, 2))
    prior = Product(a=Exponential(columns=0), b=Gaussian(columns=1)).prior(Sequences(values), N_STATES, flat=False)
    assert prior.counts(sums_of(prior, values, np.ones((N_STATES, N))), values) is None


# ---- observations ----------------------------------------------------------------------------------------------------


def test_observations_are_copied_only_if_they_must():
    for dtype in (np.float32, np.float64):
        table = np.ones((3, 2), dtype=dtype)
        assert real_rows(table) is table
    for dtype in (np.int8, np.uint16, np.int64):
        table = np.ones((3, 2), dtype=dtype)
        assert whole_rows(table) is table
    assert real_rows(np.arange(3)).dtype == np.float64
    assert real_rows(np.ones((4, 4))[:, ::2]).flags.c_contiguous
    np.testing.assert_array_equal(whole_rows(np.array([1.0, np.nan, 3.0])), [[1], [-1], [3]])
    np.testing.assert_array_equal(whole_rows(np.array([True, False])), [[1], [0]])


# ---- gamma functions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [1e-3, 0.5, 1.0, 3.3, 15.9, 16.0, 40.0, 1234.5, 1e8])
def test_ratios_of_gamma_functions(x):
    assert half_step(x) * half_step(x + 0.5) == pytest.approx(x, rel=2e-15)
    for n in [1, 2, 3, 7, 40]:
        expected = math.fsum([math.log(half_step(x + 0.5 * i)) for i in range(n)])
        assert log_half_steps(x, n) == pytest.approx(expected, rel=1e-13, abs=1e-14)
    for n in [49, 1000, 100_000]:
        expected = math.fsum(np.log(x + np.arange(n)).tolist())
        assert log_rising(x, n) == pytest.approx(expected, rel=1e-12)
    assert half_step(0.5) == pytest.approx(1.0 / math.sqrt(math.pi), rel=2e-15)


# ---- whole fits ------------------------------------------------------------------------------------------------------

ALGORITHMS = {
    "gibbs states": lambda: Gibbs(n_chains=1, n_samples=4, burn_in=2, block="state"),
    "gibbs sequences": lambda: Gibbs(n_chains=1, n_samples=4, burn_in=2, block="sequence"),
    "cvi states": lambda: CVI(cluster="state", max_iter=4, tolerance=0.0),
    "cvi sequences": lambda: CVI(cluster="sequence", max_iter=4, tolerance=0.0),
    "cvi subchains": lambda: CVI(cluster="subchain", length=7, max_iter=4, tolerance=0.0),
}
PRIORS = [NormalInverseWishart, NormalInverseGamma, GammaRates, BetaTable, ProductPosterior]


def fitted(family, shape, algorithm, **known):
    specification, data = example(family, shape)
    model = HMM(3, specification, Dirichlet(0.5), ALGORITHMS[algorithm](), init="posteriors", random_state=3, n_jobs=1)
    return quiet(model, data, **known)


def quiet(model, data, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data, **arguments)


def assert_same_fit(monkeypatch, family, shape, algorithm, **known):
    compiled = fitted(family, shape, algorithm, **known)
    with monkeypatch.context() as patch:
        for kind in PRIORS:
            patch.setattr(kind, "counts", lambda self, sums, values: None)
        plain = fitted(family, shape, algorithm, **known)
    if algorithm.startswith("gibbs"):
        np.testing.assert_array_equal(compiled.training_marginals_.entries, plain.training_marginals_.entries)
    np.testing.assert_allclose(compiled.training_marginals_.entries, plain.training_marginals_.entries, atol=1e-9)
    np.testing.assert_allclose(compiled.trace_.objective, plain.trace_.objective, rtol=1e-9)
    for name, array in compiled.statistics_.arrays().items():
        np.testing.assert_allclose(array, plain.statistics_.arrays()[name], rtol=1e-8, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("family", ["gaussian", "diagonal_gaussian", "poisson", "bernoulli", "product"])
def test_fits_are_those_of_visits_in_python(family, algorithm, monkeypatch):
    assert_same_fit(monkeypatch, family, "ragged", algorithm)


@pytest.mark.parametrize("family", ["diagonal_gaussian", "poisson"])
def test_fits_with_missing_entries_are_those_of_visits_in_python(family, monkeypatch):
    for algorithm in ("gibbs states", "cvi sequences"):
        assert_same_fit(monkeypatch, family, "missing", algorithm)


def test_fits_with_weights_are_those_of_visits_in_python(monkeypatch):
    weights = np.array([1.0, 2.0, 0.5, 1.5, 3.0, 0.7])
    assert_same_fit(monkeypatch, "gaussian", "ragged", "cvi sequences", sample_weight=weights)


@pytest.mark.parametrize(("family", "frozen"), [("gaussian", {}), ("product", {}), ("product", {"b__frozen": True})])
def test_a_resumed_fit_is_the_same_to_the_bit(family, frozen, tmp_path):
    """Predictive weights are worked out anew from the same sums."""
    specification, data = example(family, "ragged")
    start = quiet(HMM(3, specification, init="kmeans", inference=VI(max_iter=2), random_state=0), data)
    specification = clone(specification).set_params(**frozen)

    def fit(max_iter, **settings):
        inference = CVI(cluster="subchain", length=7, max_iter=max_iter, tolerance=0.0)
        model = HMM(3, specification, Dirichlet(0.5), inference, init=start, random_state=3, n_jobs=1)
        return quiet(model, data, **settings)

    fit(2, checkpoint=tmp_path / "checkpoint")
    resumed, whole = fit(6, checkpoint=tmp_path / "checkpoint", resume=True), fit(6)
    np.testing.assert_array_equal(resumed.training_marginals_.entries, whole.training_marginals_.entries)
    for name, array in whole.statistics_.arrays().items():
        np.testing.assert_array_equal(resumed.statistics_.arrays()[name], array, err_msg=name)


# ---- a family of one's own -------------------------------------------------------------------------------------------


class OwnCounts(NamedTuple):
    """One column of counts with Gamma priors, as a user may write it."""

    values: np.ndarray
    weight: np.ndarray
    total: np.ndarray
    shape: np.ndarray
    rate: np.ndarray


@implements(add, OwnCounts)
def _add_own(counts, position, k, amount):
    counts.weight[k, 0] += amount
    counts.total[k, 0] += amount * counts.values[position]


@implements(weigh, OwnCounts)
def _weigh_own(counts, position, k):
    x, shape, rate = counts.values[position], counts.shape[k, 0] + counts.total[k, 0], counts.rate[k, 0]
    rate += counts.weight[k, 0]
    log = math.lgamma(shape + x) - math.lgamma(shape) - math.lgamma(x + 1.0)
    return 1.0, log + shape * math.log(rate / (rate + 1.0)) - x * math.log(rate + 1.0)


def own_counts(prior, sums, values):
    live = sums.scale(1.0)
    return EmissionCounts(OwnCounts(values.astype(float), live.weight, live.total, prior.shape, prior.rate), live)


@pytest.mark.parametrize(
    "inference",
    [
        CVI("state", max_iter=4),
        CVI(max_iter=4),
        Gibbs("state", n_samples=4, burn_in=2, n_chains=1),
        Gibbs("sequence", n_samples=4, burn_in=2, n_chains=1),
    ],
    ids=str,
)
def test_two_functions_compile_a_family_of_ones_own_and_none_of_it_is_kept_on_disk(monkeypatch, inference):
    data = [np.random.default_rng(seed).poisson([2, 2, 9, 9, 9, 2] * 3) for seed in range(6)]
    kept, save = [], KernelCache.save_overload

    def watched(cache, sig, cres):
        kept.append(str(sig))
        save(cache, sig, cres)

    def fit():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return HMM(2, "poisson", inference=inference, random_state=0, n_jobs=1).fit(data)

    expected = fit()
    monkeypatch.setattr(GammaRates, "counts", own_counts)
    monkeypatch.setattr(KernelCache, "save_overload", watched)
    np.testing.assert_allclose(fit().transition_, expected.transition_, rtol=1e-9)
    assert not [sig for sig in kept if OwnCounts.__name__ in sig]


def test_kernels_with_functions_of_others_are_not_kept_on_disk():
    """Numba would find them again after the functions have changed."""
    one = np.ones((1, 1))
    own, ours = OwnCounts(one, one, one, one, one), TabledLogs(one, np.zeros(1, np.int64))
    for kernel in (visit_states, visit_pieces):
        assert kernel_for(kernel, ours) is kernel
        assert kernel_for(kernel, PairCounts(ours, ours)) is kernel
        for counts in (own, PairCounts(ours, own)):
            twin = kernel_for(kernel, counts)
            assert twin is kernel_for(kernel, own)
            assert twin is not kernel
            assert twin.targetoptions == kernel.targetoptions
            assert not twin.stats.cache_path


def test_other_programs_do_not_find_classes_of_others_in_the_cache(tmp_path):
    """Numba reads all that it has kept of a kernel at once, and fails if it cannot find a class."""
    own = tmp_path / "own.py"
    own.write_text(Path(__file__).read_text(encoding="utf8"), encoding="utf8")
    sources = Path(__file__).parents[1]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    fit = "import warnings; warnings.simplefilter('ignore'); import numpy as np; from subchain import HMM, Gibbs; "
    fit += "HMM(2, 'poisson', inference={}, n_jobs=1).fit([np.array([1, 2, 1])] * 4)"
    inference = "Gibbs(n_samples=1, burn_in=1, n_chains=1)"
    patched = "import own; from subchain.emissions.poisson import GammaRates; GammaRates.counts = own.own_counts"
    first = f"{patched}; {fit.format(inference)}"
    path = os.pathsep.join([str(tmp_path), str(sources), *sys.path])
    subprocess.run([sys.executable, "-c", first], env=environment | {"PYTHONPATH": path}, check=True)
    command = [sys.executable, "-c", fit.format(inference)]
    subprocess.run(command, env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)}, check=True)
