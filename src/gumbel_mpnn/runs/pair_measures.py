"""Homophily before and after rewiring by kinds of pairs, which shows whether a learned graph overfits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.measures.homophily import PAIRS, PairValues, training_pairs
from gumbel_mpnn.rewiring.learned_graph import as_data
from gumbel_mpnn.runs.store import Learned, Summary

HOMOPHILY = "edge_homophily"


@dataclass(frozen=True)
class PairKind:
    """Measures of one kind of pairs, each the mean over the runs in which it is defined."""

    before: PairValues
    after: PairValues
    change: Summary
    """How much edge homophily rises from the given to the learned graph, in the runs in which it is defined."""

    @property
    def rises(self) -> bool:
        """Whether edge homophily rises by more than its standard deviation over the runs."""
        return self.change.n > 0 and self.change.mean > self.change.std


@dataclass(frozen=True)
class PairMeasures:
    """Measures before and after rewiring, by the number of training nodes in a pair."""

    kinds: Mapping[str, PairKind]
    """`train_train`, `train_other` and `other_other`."""
    runs: int

    @property
    def overfits(self) -> bool:
        """Whether homophily rises among training nodes and not among the other nodes."""
        other = self.kinds["other_other"]
        return self.kinds["train_train"].rises and other.change.n > 0 and not other.rises

    def sentence(self) -> str:
        """One sentence for the user if the learned graph overfits; empty otherwise."""
        if not self.overfits:
            return ""
        inside, outside = (self.kinds[kind].change.mean for kind in ("train_train", "other_other"))
        return (
            f"edge homophily changes by {inside:+.3f} among training nodes but by {outside:+.3f} among other"
            " nodes: the improvement is on training nodes alone, that is overfitting"
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values; `homophily_change` is the mean over the runs, with its spread."""
        found: dict[str, Any] = {"runs": self.runs, "overfits": self.overfits}
        for name, kind in self.kinds.items():
            change = kind.change.to_dict() if kind.change.n else None
            found[name] = {"before": kind.before, "after": kind.after, "homophily_change": change}
        return found


def measure_pairs(learned: Learned, data: Data, splits: Sequence[int], threshold: float = 0.5) -> PairMeasures:
    """Measure the learned graph of every run, each with its own split, and average over the runs.

    `data` is the training graph, with masks [N] or [N, S]. Pairs of a smaller probability in a run than `threshold` are
    left out.
    """
    masks, nodes = by_split(data.train_mask), Data(y=data.y, num_nodes=data.num_nodes)
    given = Data(edge_index=learned.graph.pair_index[:, learned.graph.is_original], y=data.y, num_nodes=data.num_nodes)
    of_split = {split: training_pairs(given, masks[:, split]) for split in set(splits)}
    before = [of_split[split] for split in splits]
    after = [
        training_pairs(as_data(learned.graph, probability, nodes, threshold), masks[:, split])
        for probability, split in zip(learned.probability, splits, strict=True)
    ]
    kinds = {}
    for kind in PAIRS:
        old, new = ([values[kind] for values in each] for each in (before, after))
        pairs = [(one[HOMOPHILY], other[HOMOPHILY]) for one, other in zip(old, new, strict=True)]
        rises = (None if one is None or other is None else other - one for one, other in pairs)
        kinds[kind] = PairKind(_means(old), _means(new), Summary.of(rises))
    return PairMeasures(kinds, len(splits))


def _means(runs: Sequence[PairValues]) -> PairValues:
    """Mean of every measure over the runs in which it is defined."""
    defined = {name: [value for of in runs if (value := of[name]) is not None] for name in runs[0]}
    return {name: math.fsum(values) / len(values) if values else None for name, values in defined.items()}
