"""Report with all metrics of a tagging."""

from __future__ import annotations

import dataclasses
from typing import Any

from subchain.metrics.agreement import adjusted_rand
from subchain.metrics.confusions import Confusion, confusions_of_pairs
from subchain.metrics.contingency import Contingency
from subchain.metrics.information import (
    completeness,
    homogeneity,
    state_entropy,
    tag_entropy,
    v_measure,
    variation_of_information,
)
from subchain.metrics.labels import pair_labels
from subchain.metrics.mapping import (
    accuracy,
    cross_validated_many_to_one,
    greedy_one_to_one,
    many_to_one,
    mapped_accuracy,
    optimal_map,
)

#: States are taken for the tags of the same numbers if that agrees with this fraction of what the best map does.
NUMBERED = 0.9


@dataclasses.dataclass(frozen=True)
class TaggingReport:
    """Metrics of predicted states against gold tags, as returned by :func:`tagging_report`.

    Attributes
    ----------
    n_tokens, n_left_out : numbers of positions scored, and of positions with an unknown label
    states_used : number of states that occur
    tags_used : number of tags that occur
    accuracy : fraction of positions whose state has the number of their tag; meaningful if state *k* is tag *k*
    many_to_one : accuracy of the many-to-one map
    cross_validated_many_to_one : accuracy on the second half of the many-to-one map learned on the first half
    greedy_one_to_one, optimal_one_to_one : accuracies of the one-to-one maps
    variation_of_information : in bits, smaller is better
    v_measure, homogeneity, completeness : from 0 to 1
    adjusted_rand : adjusted Rand index
    tag_entropy, state_entropy : in bits
    confusions : the largest groups of errors, by word, gold tag and predicted tag or state
    states_are_tags : whether state *k* is tag *k*; if not, ``accuracy`` means nothing, and errors are positions whose
        state is not mapped to their tag by the optimal one-to-one map

    Examples
    --------
    >>> from subchain.metrics import tagging_report
    >>> print(str(tagging_report([0, 1, 1, 0], [0, 1, 1, 1])).splitlines()[2])
    accuracy                      75.00%
    """

    n_tokens: int
    n_left_out: int
    states_used: int
    tags_used: int
    accuracy: float
    many_to_one: float
    cross_validated_many_to_one: float
    greedy_one_to_one: float
    optimal_one_to_one: float
    variation_of_information: float
    v_measure: float
    homogeneity: float
    completeness: float
    adjusted_rand: float
    tag_entropy: float
    state_entropy: float
    confusions: tuple[Confusion, ...]
    states_are_tags: bool = True

    def __str__(self) -> str:
        rows = [
            ("tokens", f"{self.n_tokens}" + (f" ({self.n_left_out} left out)" if self.n_left_out else "")),
            ("states used", f"{self.states_used}, for {self.tags_used} tags"),
            ("accuracy", f"{self.accuracy:.2%}" if self.states_are_tags else "none: states have numbers, not tags"),
            ("many-to-one", f"{self.many_to_one:.2%}"),
            ("many-to-one, cross-validated", f"{self.cross_validated_many_to_one:.2%}"),
            ("one-to-one, greedy", f"{self.greedy_one_to_one:.2%}"),
            ("one-to-one, optimal", f"{self.optimal_one_to_one:.2%}"),
            ("variation of information", f"{self.variation_of_information:.3f} bits"),
            ("V-measure", f"{self.v_measure:.2%}"),
            ("homogeneity", f"{self.homogeneity:.2%}"),
            ("completeness", f"{self.completeness:.2%}"),
            ("adjusted Rand index", f"{self.adjusted_rand:.3f}"),
            ("entropy of tags", f"{self.tag_entropy:.3f} bits"),
            ("entropy of states", f"{self.state_entropy:.3f} bits"),
        ]
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value}" for name, value in rows]
        if self.confusions:
            lines += ["largest confusions"] + [f"  {confusion}" for confusion in self.confusions]
        return "\n".join(lines)


def tagging_report(
    gold: Any, predicted: Any, words: Any = None, n_confusions: int = 10, states_are_tags: bool | None = None
) -> TaggingReport:
    """Compute all metrics of predicted states against gold tags.

    Parameters
    ----------
    gold, predicted : array of int (N,), list of such arrays, or Sequences
        Tags and states, -1 where unknown; such positions are left out. The names of the tags are those of the
        vocabulary of ``gold``, if it has one. At least two positions must be known.
    words : optional
        The words at the same positions, codes or strings, by which confusions are grouped.
    n_confusions : int
        Maximum number of confusions in the report.
    states_are_tags : bool, optional
        Whether state *k* is tag *k*, as after a fit with a dictionary or with given states. States found without
        supervision are listed by their numbers. By default states are tags if ``accuracy`` is at least nine tenths of
        ``optimal_one_to_one``.

    Returns
    -------
    TaggingReport

    Examples
    --------
    >>> from subchain.metrics import tagging_report
    >>> report = tagging_report([0, 1, 1, 0], [0, 1, 1, 1], words=["dogs", "bark", "run", "run"])
    >>> report.accuracy, report.confusions[0].word
    (0.75, 'run')
    >>> report = tagging_report([0, 1, 1, 0, 0], [1, 0, 0, 1, 2], words=["dogs", "bark", "run", "cats", "run"])
    >>> print(report.confusions[0])
    run 0 as state 2: 1
    """
    pairs = pair_labels(gold, predicted)
    table = Contingency.of_pairs(pairs)
    first, second = map(Contingency.of_pairs, pairs.halves())
    by_number, best = accuracy(table), optimal_map(table)
    by_best_map = mapped_accuracy(table, best)
    if states_are_tags is None:
        states_are_tags = by_number >= NUMBERED * by_best_map
    tag_of_state = None if states_are_tags else best
    return TaggingReport(
        n_tokens=table.n_tokens,
        n_left_out=len(pairs.whole.values) - table.n_tokens,
        states_used=table.states_used,
        tags_used=int((table.tag_totals > 0).sum()),
        accuracy=by_number,
        many_to_one=many_to_one(table),
        cross_validated_many_to_one=cross_validated_many_to_one(first, second),
        greedy_one_to_one=greedy_one_to_one(table),
        optimal_one_to_one=by_best_map,
        variation_of_information=variation_of_information(table),
        v_measure=v_measure(table),
        homogeneity=homogeneity(table),
        completeness=completeness(table),
        adjusted_rand=adjusted_rand(table),
        tag_entropy=tag_entropy(table),
        state_entropy=state_entropy(table),
        confusions=tuple(confusions_of_pairs(pairs, words, n_confusions, tag_of_state)),
        states_are_tags=bool(states_are_tags),
    )
