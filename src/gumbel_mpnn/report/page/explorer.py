"""The graph in the explorer: which nodes and pairs of it, and what is known of them; the page finds their places."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch_geometric.data import Data

from gumbel_mpnn.data.check import IDENTITY
from gumbel_mpnn.report.graphs import class_names, node_ids
from gumbel_mpnn.runs.audit import Audit
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.files import none_if_nan

MOST_NODES = 3_000
MOST_PAIRS = 20_000
"""Pairs of a run in the page; its candidates with the smallest probabilities are left out first."""
MOST_FEATURES = 20
"""Features of a node in the page, those of the largest absolute value."""
AUDITED = 40
"""Number of suspicious edges, and of missing ones, that are listed, and whose ends are in the explorer."""

Indices = NDArray[np.int64]
Explored = tuple[Run, pd.DataFrame, Audit | None]
"""A run, the pairs that it knows, and its audit, if it could be made."""


def explorer_of(runs: Sequence[Explored], around: Sequence[str] = ()) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The graph of runs on the same data with its nodes, and for each run its predictions and pairs."""
    first = runs[0][0]
    data, ids, label = first.data, node_ids(first.data), first.data.y.cpu().numpy()
    pairs, predictions = [pairs for _, pairs, _ in runs], [_prediction(run) for run, _, _ in runs]
    place = {name: node for node, name in enumerate(ids)}
    asked = chain(around, *(_ends(audit) for _, _, audit in runs if audit is not None))
    nodes = _choose(pairs, [place[name] for name in asked if name in place], _interest(label, pairs, predictions))
    new = np.full(len(ids), -1)
    new[nodes] = np.arange(len(nodes))
    graph = {
        "ids": [ids[node] for node in nodes],
        "label": label[nodes].tolist(),
        "classes": class_names(data, int(label.max(initial=-1)) + 1),
        "features": _features(data, nodes),
        "nodes": len(ids),
        "undirected": first.settings.data.undirected,
    }
    of_runs = []
    for (run, every, _), prediction in zip(runs, predictions, strict=True):
        among = every[every["source"].isin(nodes) & every["target"].isin(nodes)]
        shown = _most_probable(among)
        of_run = {
            "prediction": prediction["prediction"][nodes].tolist(),
            "confidence": list(map(none_if_nan, prediction["confidence"][nodes].tolist())),
            "unseen": prediction["unseen"][nodes].tolist(),
            "source": new[shown["source"]].tolist(),
            "target": new[shown["target"]].tolist(),
            "given": shown["given"].astype(int).tolist(),
            # Rounded down, since a threshold of two decimals must cut as it does for the exact values.
            "probability": (np.floor(shown["probability"] * 1000) / 1000).tolist(),
            "learned": run.settings.rewiring is not None,
            "left_out": len(among) - len(shown),
            # Of given edges, also of those that are not in the page.
            "degree": _degrees(every[every["given"]], len(ids))[nodes].tolist(),
        }
        of_runs.append(of_run)
    return graph, of_runs


def _degrees(pairs: pd.DataFrame, count: int) -> Indices:
    """Number of pairs of each of `count` nodes, [N]."""
    return np.bincount(pairs[["source", "target"]].to_numpy().ravel(), minlength=count)


def _choose(pairs: Sequence[pd.DataFrame], first: Sequence[int], interest: NDArray[np.float64]) -> Indices:
    """All nodes of a small graph; else the first ones and those around them, then around the most interesting ones."""
    count = len(interest)
    edges = pd.concat([each[each["given"] | each["learned"]] for each in pairs])
    near = sparse.coo_array((np.ones(len(edges)), (edges["source"], edges["target"])), shape=(count, count)).tocsr()
    near = (near + near.T).tocsr()
    if count <= MOST_NODES and near.nnz // 2 <= MOST_PAIRS:
        return np.arange(count)

    def around(node: int) -> list[int]:
        return [node, *near.indices[near.indptr[node] : near.indptr[node + 1]].tolist()]

    chosen, found = set[int](), 0
    for node in chain.from_iterable(map(around, [*first, *np.argsort(-interest, kind="stable").tolist()])):
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


def _interest(
    label: Indices, pairs: Sequence[pd.DataFrame], predictions: Sequence[dict[str, NDArray[Any]]]
) -> NDArray[np.float64]:
    """How much there is to see at each node, [N]: how sure a wrong prediction is, plus its share of changed edges."""
    sure = np.zeros(len(label))
    for prediction in predictions:
        wrong = (label >= 0) & (prediction["prediction"] >= 0) & (prediction["prediction"] != label)
        sure = np.maximum(sure, wrong * np.nan_to_num(prediction["confidence"]))
    changed = _degrees(pd.concat([each[each["given"] != each["learned"]] for each in pairs]), len(label))
    found: NDArray[np.float64] = sure + changed / max(changed.max(initial=0), 1)
    return found


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


def _most_probable(pairs: pd.DataFrame) -> pd.DataFrame:
    """At most `MOST_PAIRS` of the pairs: changed ones first, then given ones, then candidates by probability."""
    changed = pairs["given"] != pairs["learned"]
    rank = pairs["probability"] + np.where(changed, 3, np.where(pairs["given"], 2, 0))
    return pairs.loc[rank.nlargest(MOST_PAIRS).index.sort_values()]


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
    names: list[str] = []
    for column in data.get("feature_columns") or ():
        values = column.categories
        names += [column.name] if values is None else [f"{column.name}: {value or '(missing)'}" for value in values]
    return {"names": names if len(names) == rows.shape[1] else [], "of": shown}
