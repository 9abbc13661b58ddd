"""A short run of every algorithm, for tests over all of them. A new algorithm joins by adding a line here."""

import numpy as np

from subchain import CVI, EM, HDP, HMM, SCVI, SVI, VI, Beam, Gibbs, Hastings

STATES = {"one state": 1, "three states": 3, "more states than data": 11}
#: Every algorithm with settings that make a short run; a new one needs an entry.
BRIEF = {
    "beam": lambda: Beam(n_samples=3, burn_in=2, n_chains=2),
    "cvi": lambda: CVI(max_iter=6, tolerance=0.0, cluster_size=2),
    "cvi of states": lambda: CVI(cluster="state", max_iter=4, tolerance=0.0),
    "cvi of subchains": lambda: CVI(cluster="subchain", length=10, order="batch", max_iter=4, tolerance=0.0),
    "em": lambda: EM(max_iter=6, tolerance=0.0),
    "online em": lambda: EM(batch=2, length=None, max_updates=6, report_every=1),
    "gibbs": lambda: Gibbs(n_samples=3, burn_in=2, n_chains=2),
    "hastings": lambda: Hastings(n_samples=3, burn_in=2, n_chains=2),
    "scvi": lambda: SCVI(length=None, batch=2, max_updates=6, report_every=1, average=True),
    "svi": lambda: SVI(length=None, batch=2, max_updates=6, report_every=1, adapt=True),
    "vi": lambda: VI(max_iter=6, tolerance=0.0),
    "vi of states": lambda: VI(max_iter=6, tolerance=0.0, cluster="state"),
}
#: Priors over the chain of algorithms that need one of their own.
TRANSITIONS = {"beam": lambda: HDP(concentration="learned", top_concentration="learned", stickiness=0.5)}


def build(algorithm, family, states, **settings):
    settings = {"transition": TRANSITIONS.get(algorithm, lambda: None)()} | settings
    return HMM(STATES[states], family, inference=BRIEF[algorithm](), random_state=3, n_jobs=1, **settings)


def same(one, other):
    for name in ("point_", "statistics_", "prior_"):
        first, second = getattr(one, name).arrays(), getattr(other, name).arrays()
        assert first.keys() == second.keys()
        for key in first:
            assert np.array_equal(first[key], second[key], equal_nan=False), (name, key)
