"""Measures of learned graphs, separately for pairs of training nodes and of other nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.measures.homophily import PAIRS, PairValues, training_pairs
from gumbel_mpnn.rewiring.rewirer import as_data
from gumbel_mpnn.runs.graph_file import Learned
from gumbel_mpnn.runs.record import Summary
from gumbel_mpnn.util.errors import DataError

HOMOPHILY = "edge_homophily"


@dataclass(frozen=True)
class PairKind:
    """Measures of one kind of pairs, each the mean over the runs in which it is defined."""

    before: PairValues
    after: PairValues
    change: Summary | None
    """How much edge homophily rises from the given to the learned graph; None if it is not defined in any run."""

    @property
    def rises(self) -> bool:
        """Whether edge homophily rises by more than its standard deviation over the runs."""
        return self.change is not None and self.change.mean > self.change.std


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
        return self.kinds["train_train"].rises and other.change is not None and not other.rises

    def sentence(self) -> str:
        """One sentence for the user if the learned graph overfits; empty otherwise."""
        inside, outside = (self.kinds[kind].change for kind in ("train_train", "other_other"))
        if not self.overfits or inside is None or outside is None:
            return ""
        return (
            f"edge homophily changes by {inside.mean:+.3f} among training nodes but by {outside.mean:+.3f} among other"
            " nodes: the improvement is on training nodes alone, that is overfitting"
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain JSON values; `homophily_change` is the mean over the runs, with its spread."""
        kinds = {
            name: {
                "before": kind.before,
                "after": kind.after,
                "homophily_change": None if kind.change is None else kind.change.to_dict(),
            }
            for name, kind in self.kinds.items()
        }
        return {**kinds, "runs": self.runs, "overfits": self.overfits}


def measure_pairs(learned: Learned, data: Data, splits: Sequence[int], threshold: float = 0.5) -> PairMeasures:
    """Measure the graph of every run with its own split, and average over the runs.

    `data` is the training graph, with masks [N] or [N, S]. Pairs of a smaller probability in a run than `threshold` are
    left out.
    """
    masks = by_split(data.train_mask.cpu())
    if any(split >= masks.shape[1] for split in splits):
        raise DataError(f"this graph has masks for {masks.shape[1]} splits: give it all those of the training graph")
    nodes = Data(y=data.y.cpu(), num_nodes=data.num_nodes)
    pairs = learned.graph.pair_index[:, learned.graph.is_original]
    given = Data(edge_index=pairs, y=nodes.y, num_nodes=data.num_nodes)
    of_split = {split: training_pairs(given, masks[:, split]) for split in set(splits)}
    before = [of_split[split] for split in splits]
    after = [
        training_pairs(as_data(learned.graph, probability, nodes, threshold), masks[:, split])
        for probability, split in zip(learned.probability, splits, strict=True)
    ]
    kinds = {kind: _kind([values[kind] for values in before], [values[kind] for values in after]) for kind in PAIRS}
    return PairMeasures(kinds, len(splits))


def _kind(before: Sequence[PairValues], after: Sequence[PairValues]) -> PairKind:
    changes = [
        new - old
        for old, new in zip(_column(before, HOMOPHILY), _column(after, HOMOPHILY), strict=True)
        if old is not None and new is not None
    ]
    return PairKind(_means(before), _means(after), Summary.of(changes) if changes else None)


def _means(runs: Sequence[PairValues]) -> PairValues:
    return {name: _mean(_column(runs, name)) for name in runs[0]}


def _column(runs: Iterable[PairValues], name: str) -> list[int | float | None]:
    return [values[name] for values in runs]


def _mean(values: Iterable[int | float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None
