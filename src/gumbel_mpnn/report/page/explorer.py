"""The graph in the explorer: which nodes and pairs of it, where they are, and what is known of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.data.feature_columns import feature_columns_of
from gumbel_mpnn.data.identity import MARK
from gumbel_mpnn.data.names import class_names_of, node_ids_of
from gumbel_mpnn.report.page.layout import layout
from gumbel_mpnn.report.page.pairs import HALF, Pairs
from gumbel_mpnn.runs import Run
from gumbel_mpnn.runs.audit import Audit

MOST_NODES = 3_000
MOST_PAIRS = 20_000
"""Pairs of a run in the page; its candidates with the smallest probabilities are left out first."""
MOST_FEATURES = 20
"""Features of a node in the page, those of the largest absolute value."""
AUDITED = 40
"""Number of suspicious edges, and of missing ones, that are listed, and whose ends are in the explorer."""
DROPPED_PULL = 0.2
"""How strongly an edge of probability 0 pulls its ends together in the layout, compared with one of probability 1."""

Indices = NDArray[np.int64]


def check_nodes(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Raise a `UserError` if none of the runs has a node of one of these names; runs without data are left out."""
    known = set[str]()
    for run in runs if names else ():
        with suppress(UserError):
            known.update(_ids(run.data))
    unknown = [name for name in names if known and name not in known]
    if unknown:
        raise UserError(f"there is no node {unknown[0]!r} in the data of these runs: give the id of a node")


def explorers(
    runs: Sequence[Run],
    pairs: Sequence[Pairs | dict[str, Any]],
    audits: Sequence[Audit | None],
    around: Sequence[str] = (),
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Graphs, one for all runs on the same data, and what each run knows of its graph.

    Runs whose data cannot be read have the reason in place of pairs, and so of a graph.
    """
    graphs: list[dict[str, Any]] = []
    found: dict[int, dict[str, Any]] = {}
    by_data: dict[str, dict[int, Pairs]] = {}
    for place, (run, known) in enumerate(zip(runs, pairs, strict=True)):
        if isinstance(known, Pairs):
            by_data.setdefault(run.records[0].data_hash, {})[place] = known
        else:
            found[place] = known
    for places in by_data.values():
        group = _Group([runs[k] for k in places], list(places.values()), [audits[k] for k in places])
        graph, of_runs = group.shown(list(group.numbers_of(around).values()))
        found |= {place: {"graph": len(graphs), **shown} for place, shown in zip(places, of_runs, strict=True)}
        graphs.append(graph)
    return graphs, [found[place] for place in range(len(runs))]


class _Group:
    """Runs on the same data."""

    def __init__(self, runs: Sequence[Run], pairs: Sequence[Pairs], audits: Sequence[Audit | None]) -> None:
        self.runs, self.pairs, self.audits, self.data = runs, pairs, audits, copy.copy(runs[0].data).cpu()
        self.count = int(self.data.num_nodes or 0)
        self.ids = _ids(self.data)
        self.label = self.data.y.numpy()
        self.predictions = [_prediction(run) for run in runs]

    def numbers_of(self, names: Sequence[str]) -> dict[str, int]:
        """Numbers of the nodes with these names, for those that are there."""
        place = {name: node for node, name in enumerate(self.ids)}
        return {name: place[name] for name in names if name in place}

    def shown(self, centers: Sequence[int]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The graph with its nodes and places, and for each run its predictions and pairs."""
        nodes = self._nodes(centers)
        new = np.full(self.count, -1)
        new[nodes] = np.arange(len(nodes))
        inside = [_within(each, new) for each in self.pairs]
        pairs = [_most_probable(each) for each in inside]
        xy = layout(len(nodes), *_pulls(pairs, len(nodes)))
        names = class_names_of(self.data) or range(int(self.label.max(initial=-1)) + 1)
        graph = {
            "ids": [self.ids[node] for node in nodes],
            "label": self.label[nodes].tolist(),
            "classes": [str(name) for name in names],
            "x": xy[:, 0].round(4).tolist(),
            "y": xy[:, 1].round(4).tolist(),
            "features": _features(self.data, nodes),
            "nodes": self.count,
            "undirected": self.runs[0].settings.data.undirected,
        }
        of_runs = [
            {
                **{name: _plain(values[nodes]) for name, values in prediction.items()},
                "source": each.ends[0].tolist(),
                "target": each.ends[1].tolist(),
                "given": each.given.astype(int).tolist(),
                # Rounded down, since a threshold of two decimals must cut as it does for the exact values.
                "probability": (np.floor(each.probability * 1000) / 1000).tolist(),
                "learned": run.settings.rewiring is not None,
                "left_out": len(all_inside.given) - len(each.given),
                # Of given edges, also of those that are not in the page.
                "degree": np.bincount(everywhere.ends[:, everywhere.given].flat, minlength=self.count)[nodes].tolist(),
            }
            for run, prediction, each, all_inside, everywhere in zip(
                self.runs, self.predictions, pairs, inside, self.pairs, strict=True
            )
        ]
        return graph, of_runs

    def _nodes(self, centers: Sequence[int]) -> Indices:
        """All nodes of a small graph; else those around the centers, suspicious edges, errors and changes."""
        ends = np.concatenate([pairs.ends[:, pairs.given | pairs.changed] for pairs in self.pairs], axis=1)
        near = sparse.coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(self.count, self.count)).tocsr()
        near = (near + near.T).tocsr()
        if self.count <= MOST_NODES and near.nnz // 2 <= MOST_PAIRS:
            return np.arange(self.count)
        wrong_and_rewired = chain.from_iterable(zip_longest(self._wrong(), self._rewired()))
        wanted = chain(
            chain.from_iterable(map(partial(_around, near), centers)),
            self._audited(),
            chain.from_iterable(_around(near, node) for node in wrong_and_rewired if node is not None),
            chain.from_iterable(map(partial(_around, near), range(self.count))),
        )
        chosen, pairs = set[int](), 0
        for node in wanted:
            if node not in chosen:
                pairs += sum(other in chosen for other in _around(near, node))
                if len(chosen) == MOST_NODES or pairs > MOST_PAIRS:
                    break
                chosen.add(node)
        return np.array(sorted(chosen), dtype=np.int64)

    def _audited(self) -> list[int]:
        found = [audit for audit in self.audits if audit is not None]
        tables = [table.head(AUDITED) for audit in found for table in (audit.edges, audit.missing)]
        names = [str(name) for table in tables for end in ("source", "target") for name in table[end]]
        return list(self.numbers_of(names).values())

    def _wrong(self) -> list[int]:
        """Nodes whose prediction is wrong, the surest first."""
        sure = np.zeros(self.count)
        for prediction in self.predictions:
            wrong = (self.label >= 0) & (prediction["prediction"] >= 0) & (prediction["prediction"] != self.label)
            sure = np.maximum(sure, wrong * np.nan_to_num(prediction["confidence"]))
        order = np.argsort(-sure, kind="stable")
        return [int(node) for node in order if sure[node] > 0]

    def _rewired(self) -> list[int]:
        """Nodes with a changed edge, those with the most first."""
        changed = np.zeros(self.count, dtype=np.int64)
        for pairs in self.pairs:
            changed += np.bincount(pairs.ends[:, pairs.changed].reshape(-1), minlength=self.count)
        return [int(node) for node in np.argsort(-changed, kind="stable") if changed[node]]


def _ids(data: Data) -> list[str]:
    return [str(name) for name in node_ids_of(data) or range(int(data.num_nodes or 0))]


def _prediction(run: Run) -> dict[str, NDArray[Any]]:
    """Predicted class (-1 if unknown), its probability, and whether no run that predicts had used the node."""
    try:
        unseen, average = run.predict_proba(out_of_fold=True), run.predict_proba()
    except UserError:  # the models were deleted
        nothing = np.full(int(run.data.num_nodes or 0), -1)
        return {"prediction": nothing, "confidence": np.full(len(nothing), np.nan), "unseen": nothing >= 0}
    is_unseen = ~unseen[:, 0].isnan()
    probability, found = torch.where(is_unseen[:, None], unseen, average).max(-1)
    confidence = probability.double().numpy().round(4)
    return {"prediction": found.numpy(), "confidence": confidence, "unseen": is_unseen.numpy()}


def _around(near: Any, node: int) -> list[int]:
    return [node, *near.indices[near.indptr[node] : near.indptr[node + 1]].tolist()]


def _within(pairs: Pairs, new: Indices) -> Pairs:
    """Pairs among some nodes, whose new numbers are given; -1 for other nodes."""
    ends = new[pairs.ends]
    inside = (ends >= 0).all(0)
    return Pairs(ends[:, inside], pairs.given[inside], pairs.probability[inside])


def _most_probable(pairs: Pairs) -> Pairs:
    """At most `MOST_PAIRS` of the pairs: changed ones first, then given ones, then candidates by probability."""
    rank = np.where(pairs.changed, 3, np.where(pairs.given, 2, 0)) + pairs.probability
    return pairs.at(np.sort(np.argsort(-rank, kind="stable")[:MOST_PAIRS]))


def _pulls(several: Sequence[Pairs], count: int) -> tuple[Indices, NDArray[np.float64]]:
    """Edges of all runs for the layout and how strongly they pull, the mean over the runs."""
    total: Any = sparse.coo_array((count, count), dtype=np.float64).tocsr()
    for pairs in several:
        drawn = pairs.given | (pairs.probability >= HALF)
        weight = np.maximum(pairs.probability[drawn], DROPPED_PULL) / len(several)
        total = total + sparse.coo_array((weight, tuple(pairs.ends[:, drawn])), shape=(count, count)).tocsr()
    total = total.tocoo()
    return np.stack([total.row, total.col]).astype(np.int64), total.data


def _features(data: Data, nodes: Indices) -> dict[str, Any]:
    """Names of features, and for each node the places and values of those that are shown."""
    x = data.get("x")
    if x is None or data.get(MARK) or not nodes.size:
        return {"names": [], "of": []}
    rows = _rows(x, nodes)
    names = _feature_names(data, rows.shape[1])
    shown = []
    for row in rows:
        largest = np.arange(len(row))  # few features are all shown, in their order
        if len(row) > MOST_FEATURES:
            largest = np.argsort(-np.abs(row), kind="stable")[: min(MOST_FEATURES, np.count_nonzero(row))]
        shown.append([[int(k), float(f"{row[k]:.4g}")] for k in largest])
    return {"names": names, "of": shown}


def _rows(x: Tensor, nodes: Indices) -> NDArray[np.float64]:
    chosen = x.index_select(0, torch.from_numpy(nodes))
    dense = chosen.to_dense() if chosen.layout is not torch.strided else chosen
    return dense.double().numpy()


def _feature_names(data: Data, width: int) -> list[str]:
    """Name of every feature; its number if the columns are not known."""
    names: list[str] = []
    for column in feature_columns_of(data) or ():
        if column.categories is not None:
            names += [f"{column.name}: {category or '(missing)'}" for category in column.categories]
        else:
            names += [column.name] if column.width == 1 else [f"{column.name} {k}" for k in range(column.width)]
    return names if len(names) == width else []


def _plain(values: NDArray[Any]) -> list[Any]:
    return [None if value != value else value for value in values.tolist()]
