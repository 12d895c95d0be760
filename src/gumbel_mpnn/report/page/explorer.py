"""The graph in the explorer: which nodes and pairs of it, and what is known of them; the page finds their places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data

from gumbel_mpnn.data.check import IDENTITY
from gumbel_mpnn.report.pairs import Pairs
from gumbel_mpnn.runs.audit import Audit
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.util.errors import UserError

MOST_NODES = 3_000
MOST_PAIRS = 20_000
"""Pairs of a run in the page; its candidates with the smallest probabilities are left out first."""
MOST_FEATURES = 20
"""Features of a node in the page, those of the largest absolute value."""
AUDITED = 40
"""Number of suspicious edges, and of missing ones, that are listed, and whose ends are in the explorer."""

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
    by_data: dict[str, list[int]] = {}
    for place, (run, known) in enumerate(zip(runs, pairs, strict=True)):
        if isinstance(known, Pairs):
            by_data.setdefault(run.records[0].data_hash, []).append(place)
        else:
            found[place] = known
    for places in by_data.values():
        of_all = [each for place in places if isinstance(each := pairs[place], Pairs)]
        graph, of_runs = _shown([runs[k] for k in places], of_all, [audits[k] for k in places], around)
        found |= {place: {"graph": len(graphs), **shown} for place, shown in zip(places, of_runs, strict=True)}
        graphs.append(graph)
    return graphs, [found[place] for place in range(len(runs))]


def _shown(
    runs: Sequence[Run], pairs: Sequence[Pairs], audits: Sequence[Audit | None], around: Sequence[str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The graph of runs on the same data with its nodes, and for each run its predictions and pairs."""
    data, ids = runs[0].data, _ids(runs[0].data)
    count, label = len(ids), data.y.cpu().numpy()
    predictions = [_prediction(run) for run in runs]
    names = chain(around, *(_ends(audit) for audit in audits if audit is not None))
    place = {name: node for node, name in enumerate(ids)}
    first = [place[name] for name in names if name in place]
    others = chain.from_iterable(zip_longest(_wrong(label, predictions), _rewired(pairs, count)))
    nodes = _choose(pairs, count, first, (node for node in others if node is not None))
    new = np.full(count, -1)
    new[nodes] = np.arange(len(nodes))
    inside = [_within(each, new) for each in pairs]
    graph = {
        "ids": [ids[node] for node in nodes],
        "label": label[nodes].tolist(),
        "classes": [str(name) for name in data.get("class_names") or range(int(label.max(initial=-1)) + 1)],
        "features": _features(data, nodes),
        "nodes": count,
        "undirected": runs[0].settings.data.undirected,
    }
    of_runs = [
        {
            **{name: _plain(values[nodes]) for name, values in prediction.items()},
            "source": shown.ends[0].tolist(),
            "target": shown.ends[1].tolist(),
            "given": shown.given.astype(int).tolist(),
            # Rounded down, since a threshold of two decimals must cut as it does for the exact values.
            "probability": (np.floor(shown.probability * 1000) / 1000).tolist(),
            "learned": run.settings.rewiring is not None,
            "left_out": len(among.given) - len(shown.given),
            # Of given edges, also of those that are not in the page.
            "degree": np.bincount(every.ends[:, every.given].flat, minlength=count)[nodes].tolist(),
        }
        for run, prediction, every, among, shown in zip(
            runs, predictions, pairs, inside, map(_most_probable, inside), strict=True
        )
    ]
    return graph, of_runs


def _choose(pairs: Sequence[Pairs], count: int, first: Sequence[int], others: Iterator[int]) -> Indices:
    """All nodes of a small graph; else the first ones and those around them, then around the others."""
    ends = np.concatenate([each.ends[:, each.given | each.changed] for each in pairs], axis=1)
    near = sparse.coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(count, count)).tocsr()
    near = (near + near.T).tocsr()
    if count <= MOST_NODES and near.nnz // 2 <= MOST_PAIRS:
        return np.arange(count)

    def around(node: int) -> list[int]:
        return [node, *near.indices[near.indptr[node] : near.indptr[node + 1]].tolist()]

    chosen, found = set[int](), 0
    for node in chain(*map(around, first), chain.from_iterable(map(around, chain(others, range(count))))):
        if node not in chosen:
            found += sum(other in chosen for other in around(node))
            if len(chosen) == MOST_NODES or found > MOST_PAIRS:
                break
            chosen.add(node)
    return np.array(sorted(chosen), dtype=np.int64)


def _ends(audit: Audit) -> list[str]:
    """Names of the ends of the pairs that the page lists."""
    tables = [table.head(AUDITED) for table in (audit.edges, audit.missing)]
    return [str(name) for table in tables for end in ("source", "target") for name in table[end]]


def _wrong(label: Indices, predictions: Sequence[dict[str, NDArray[Any]]]) -> list[int]:
    """Nodes whose prediction is wrong, the surest first."""
    sure = np.zeros(len(label))
    for prediction in predictions:
        wrong = (label >= 0) & (prediction["prediction"] >= 0) & (prediction["prediction"] != label)
        sure = np.maximum(sure, wrong * np.nan_to_num(prediction["confidence"]))
    return [int(node) for node in np.argsort(-sure, kind="stable") if sure[node] > 0]


def _rewired(pairs: Sequence[Pairs], count: int) -> list[int]:
    """Nodes with a changed edge, those with the most first."""
    ends = np.concatenate([each.ends[:, each.changed].reshape(-1) for each in pairs])
    changed = np.bincount(ends, minlength=count)
    return [int(node) for node in np.argsort(-changed, kind="stable") if changed[node]]


def _ids(data: Data) -> list[str]:
    return [str(name) for name in data.get("node_ids") or range(int(data.num_nodes or 0))]


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


def _within(pairs: Pairs, new: Indices) -> Pairs:
    """Pairs among some nodes, whose new numbers are given; -1 for other nodes."""
    ends = new[pairs.ends]
    inside = (ends >= 0).all(0)
    return Pairs(ends[:, inside], pairs.given[inside], pairs.probability[inside])


def _most_probable(pairs: Pairs) -> Pairs:
    """At most `MOST_PAIRS` of the pairs: changed ones first, then given ones, then candidates by probability."""
    rank = np.where(pairs.changed, 3, np.where(pairs.given, 2, 0)) + pairs.probability
    chosen = np.sort(np.argsort(-rank, kind="stable")[:MOST_PAIRS])
    return Pairs(pairs.ends[:, chosen], pairs.given[chosen], pairs.probability[chosen])


def _features(data: Data, nodes: Indices) -> dict[str, Any]:
    """Names of features, and for each node the places and values of those that are shown."""
    x = data.get("x")
    if x is None or data.get(IDENTITY) or not nodes.size:
        return {"names": [], "of": []}
    chosen = x.cpu().index_select(0, torch.from_numpy(nodes))
    rows = (chosen.to_dense() if chosen.layout is not torch.strided else chosen).double().numpy()
    shown = []
    for row in rows:
        largest = np.arange(len(row))  # few features are all shown, in their order
        if len(row) > MOST_FEATURES:
            largest = np.argsort(-np.abs(row), kind="stable")[: min(MOST_FEATURES, np.count_nonzero(row))]
        shown.append([[int(k), float(f"{row[k]:.4g}")] for k in largest])
    return {"names": _feature_names(data, rows.shape[1]), "of": shown}


def _feature_names(data: Data, width: int) -> list[str]:
    """Name of every feature; its number if the columns are not known."""
    names: list[str] = []
    for column in data.get("feature_columns") or ():
        if column.categories is not None:
            names += [f"{column.name}: {category or '(missing)'}" for category in column.categories]
        else:
            names += [column.name] if column.width == 1 else [f"{column.name} {k}" for k in range(column.width)]
    return names if len(names) == width else []


def _plain(values: NDArray[Any]) -> list[Any]:
    return [None if value != value else value for value in values.tolist()]
