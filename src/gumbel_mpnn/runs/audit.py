"""What to think of a graph and of what was learned from it: its suspicious and missing edges, and overfitting.

Edges are ranked by facts that the runs and the graph know of each pair. Every graph says for itself which facts
matter: a logistic regression tells its edges from random pairs by

- the classes that the models believe in, and how often these are joined in this graph;
- the similarity of the features;
- the number of common neighbors.

`evidence` is the logarithm of the odds that a pair with these facts is an edge and not a random pair. Edges with little
evidence are suspicious, other pairs with much evidence may be missing edges. Labels of nodes that no run has trained on
are not used.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from gumbel_mpnn.candidates import Local, TwoHop
from gumbel_mpnn.candidates.search import embeddings
from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.graph import PairGraph, without_candidates
from gumbel_mpnn.measures.homophily import PAIRS, PairValues, training_pairs
from gumbel_mpnn.measures.pair_facts import SMALLEST, class_affinity, common_neighbors, log_odds, random_non_edges
from gumbel_mpnn.rewiring.learned_graph import as_data
from gumbel_mpnn.runs.store import Learned, Summary
from gumbel_mpnn.util.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame

    from gumbel_mpnn.runs.run import Run

FACTS = ("affinity", "similarity", "common_neighbors")
HOMOPHILY = "edge_homophily"
MOST_COMPARED = 100_000
"""Number of edges, and of random pairs, that the regression compares."""


@dataclass(frozen=True)
class Audit:
    """Ranked edges and missing pairs.

    Both tables have these columns:

    - `source`, `target`: ids or numbers of the nodes;
    - `evidence`: logarithm of the odds that the pair is an edge of this graph and not a random pair;
    - `probability`: that the pair is an edge, as the runs learned it; empty for models that do not rewire;
    - `agreement`: probability that both nodes have the same class;
    - `affinity`: how often their classes are joined in this graph, compared with chance;
    - `similarity`: cosine of the features;
    - `common_neighbors`;
    - `source_class`, `target_class`: label if a run trained on the node, otherwise the prediction;
    - `source_known`, `target_known`: whether it is a label.
    """

    edges: DataFrame
    """Given edges, the most suspicious first."""
    missing: DataFrame
    """Pairs that are not edges, those with the most evidence first."""
    weights: dict[str, float]
    """Weight of each fact in the evidence, for facts of variance 1 among the edges and random pairs."""

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Convert to plain JSON values, with the first `top` rows of each table."""
        tables = {"edges": self.edges[:top], "missing": self.missing[:top]}
        rows = {name: each.astype(object).where(each.notna(), None) for name, each in tables.items()}
        return {"weights": self.weights, **{name: each.to_dict("records") for name, each in rows.items()}}


def audit(run: Run) -> Audit:
    """Rank the edges and the candidates of the training graph; `Run.audit` is the way in."""
    given = copy.copy(run.data).cpu()
    pairs, is_given, probability = _pairs(run, given)
    if not bool(is_given.any()):
        raise DataError("this graph has no edges, so there is nothing to audit")
    facts = _Facts(run, given, pairs[:, is_given])
    some = torch.randperm(facts.edges.shape[1], generator=torch.Generator().manual_seed(0))[:MOST_COMPARED]
    compared = facts.edges if len(some) == facts.edges.shape[1] else facts.edges[:, some]
    inside = _matrix(facts.of(compared))
    outside = _matrix(facts.of(random_non_edges(facts.edges, facts.num_nodes, compared.shape[1])))
    weights, offset = log_odds(inside, outside)
    table, given_ones = facts.table(pairs, weights, offset, probability), is_given.numpy()
    spread = np.concatenate([inside, outside]).std(0)
    return Audit(
        table[given_ones].sort_values("evidence", kind="stable", ignore_index=True),
        table[~given_ones].sort_values("evidence", ascending=False, kind="stable", ignore_index=True),
        {name: float(weight * std) for name, weight, std in zip(FACTS, weights, spread, strict=True)},
    )


class _Facts:
    """What is known of the pairs of one graph."""

    def __init__(self, run: Run, data: Data, edges: Tensor) -> None:
        self.run, self.edges, self.num_nodes = run, edges, int(data.num_nodes or 0)
        self.ids = np.array(data.get("node_ids") or range(self.num_nodes), dtype=object)
        splits = sorted({record.split for record in run.records})
        self.known = by_split(data.train_mask)[:, splits].any(1) & (data.y >= 0)  # labels that a run has trained on
        belief = run.predict_proba()
        label = one_hot(data.y.clamp(min=0), belief.shape[1]).to(belief.dtype)
        self.belief = torch.where(self.known[:, None], label, belief)
        self.features = embeddings(data, "x", "cosine")

    def of(self, pairs: Tensor) -> dict[str, Tensor]:
        """Facts of pairs [2, P]."""
        first, second = pairs
        return {
            "agreement": (self.belief[first] * self.belief[second]).sum(-1),
            "affinity": class_affinity(self.belief, self.edges, pairs),
            "similarity": (self.features[first] * self.features[second]).sum(-1),
            "common_neighbors": common_neighbors(self.edges, self.num_nodes, pairs),
        }

    def table(self, pairs: Tensor, weights: NDArray[np.float64], offset: float, learned: Tensor) -> DataFrame:
        """The pairs with their evidence and facts, in columns as `Audit` describes them."""
        import pandas as pd

        source, target = pairs.numpy()
        facts = self.of(pairs)
        names, known = np.array(self.run.named(self.belief.argmax(-1)), dtype=object), self.known.numpy()
        return pd.DataFrame(
            {
                "source": self.ids[source],
                "target": self.ids[target],
                "evidence": _matrix(facts) @ weights + offset,
                "probability": learned.numpy(),
                **{name: values.numpy() for name, values in facts.items()},
                "source_class": names[source],
                "target_class": names[target],
                "source_known": known[source],
                "target_known": known[target],
            }
        )


def _pairs(run: Run, given: Data) -> tuple[Tensor, Tensor, Tensor]:
    """Edges and candidates [2, P], whether each is an edge, and its learned probability, NaN if there is none.

    If the runs had no candidates, these are the most similar nodes or, without features, nodes two hops away.
    """
    undirected = run.settings.data.undirected
    if run.settings.rewiring is not None:
        learned = run.rewire(threshold=0).cpu()
        once = learned.edge_index[0] < learned.edge_index[1] if undirected else slice(None)
        pairs, is_given = learned.edge_index[:, once], learned.edge_origin[once]
        if not bool(is_given.all()):
            return pairs, is_given, learned.edge_probability[once]
        known = learned.edge_probability[once]
    bare = without_candidates(given)
    found: Data = Local()(bare)
    if not found.candidate_index.numel():
        found = TwoHop(per_node=3)(bare)
    graph = PairGraph.of(found, undirected=undirected)
    probability = torch.full((graph.num_pairs,), torch.nan)
    if run.settings.rewiring is not None:
        probability[graph.is_original] = known
    return graph.pair_index, graph.is_original, probability


def _matrix(facts: dict[str, Tensor]) -> NDArray[np.float64]:
    """The facts of a pair as a row of numbers, [P, K], in the order of `FACTS`."""
    columns = [
        (facts["affinity"] + SMALLEST).log(),
        facts["similarity"],
        facts["common_neighbors"].float().log1p(),
    ]
    return torch.stack(columns, dim=1).double().numpy()


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
    return {name: fmean(values) if values else None for name, values in defined.items()}
