"""What a hidden Markov model finds in the letters of *Alice's Adventures in Wonderland*.

    python examples/alice.py
"""

import time

import numpy as np

from subchain import HMM, VI, Categorical
from subchain.datasets import load_alice

N_STATES = 12

alice = load_alice(unit="characters", sequences="chunks").observations
order = np.random.default_rng(0).permutation(alice.n_sequences)
train, test = alice[np.sort(order[126:])], alice[np.sort(order[:126])]
letters = alice.vocabulary.to_list()

began = time.perf_counter()
model = HMM(N_STATES, Categorical(0.1), inference=VI(max_iter=500, tolerance=1e-5), n_init=3, random_state=0).fit(train)
seconds = time.perf_counter() - began
model.order_states(by="occupancy")

counts = np.bincount(train.values, minlength=len(letters)) + 0.1
unigram = np.log(counts / counts.sum())[test.values].mean()
print(f"{train.n_sequences} chunks of 200 letters, {N_STATES} states, best of 3 runs in {seconds:.1f} s")
print(f"held out, log probability of a letter: {model.score(test) / test.n_observations:.3f} (unigram {unigram:.3f})\n")

print("state   share  letters")
for state in range(N_STATES):
    probabilities = model.emission_.probabilities[state]
    top = [i for i in np.argsort(-probabilities)[:7] if probabilities[i] > 0.02]
    shown = "  ".join(f"{'␣' if letters[i] == ' ' else letters[i]} {probabilities[i]:.2f}" for i in top)
    print(f"{state:5d}  {model.state_occupancy_[state]:6.1%}  {shown}")

print("\nmost frequent moves:")
flow = model.state_occupancy_[:, None] * model.transition_
for index in np.argsort(-flow, axis=None)[:6]:
    source, target = np.unravel_index(index, flow.shape)
    print(f"  {source:2d} → {target:2d}  {model.transition_[source, target]:.0%} of the moves out of {source}")
