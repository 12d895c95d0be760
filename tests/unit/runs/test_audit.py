"""`run.audit`: which edges it suspects, which it misses, and what it does not look at."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.util.errors import DataError
from helpers import both_ways, changed, edges
from quick_fit import TABLES, on_other_data, quick

GROUP, GROUPS, WRONG = 20, 3, 5
COLUMNS = [
    "source", "target", "evidence", "probability", "agreement", "affinity", "similarity", "common_neighbors",
    "source_class", "target_class", "source_known", "target_known",
]  # fmt: skip


def grouped(wrong=WRONG, seed=0):
    """Three groups with edges inside, features that show the group, and a few edges between groups."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(GROUPS), GROUP)
    pairs = [(a, b) for a in range(len(group)) for b in range(a) if group[a] == group[b] and rng.random() < 0.3]
    pairs += [(k, GROUP + k) for k in range(wrong)]
    part = torch.from_numpy(rng.integers(3, size=(len(group), 2)))
    return Data(
        x=torch.from_numpy(np.eye(GROUPS)[group] + rng.normal(size=(len(group), GROUPS)) * 0.3).float(),
        y=torch.from_numpy(group),
        edge_index=both_ways(edges(*pairs)),
        **{f"{name}_mask": part == k for k, name in enumerate(("train", "val", "test"))},
    )


@pytest.fixture(scope="module")
def run():
    settings = {**TABLES, "train": {"lr": 0.05, "epochs": 30}}
    return quick(grouped(), "gumbel-mpnn", settings=settings, splits=[0])


@pytest.fixture(scope="module")
def plain():
    return quick(grouped(), "gcn", settings={**TABLES, "train": {"lr": 0.05, "epochs": 30}}, splits=[0])


@pytest.mark.parametrize("which", ["run", "plain"])
def test_edges_between_groups_come_first(which, request):
    found = request.getfixturevalue(which).audit()
    assert list(found.edges.columns) == list(found.missing.columns) == COLUMNS
    first = found.edges.head(WRONG)
    assert {(row.source // GROUP, row.target // GROUP) for row in first.itertuples()} == {(0, 1)}
    assert found.edges["evidence"].is_monotonic_increasing
    assert found.missing["evidence"].is_monotonic_decreasing


@pytest.mark.parametrize("which", ["run", "plain"])
def test_missing_pairs_are_within_groups_and_no_edges(which, request):
    run = request.getfixturevalue(which)
    missing = run.audit().missing
    given = {tuple(sorted(pair)) for pair in run.data.edge_index.T.tolist()}
    pairs = {tuple(sorted(pair)) for pair in zip(missing["source"], missing["target"], strict=True)}
    assert pairs.isdisjoint(given)
    top = missing.head(10)
    assert (top["source"] // GROUP == top["target"] // GROUP).all()


def test_every_edge_is_there_once(run):
    found = run.audit().edges
    assert len(found) == run.data.num_edges // 2
    assert len({tuple(sorted(pair)) for pair in zip(found["source"], found["target"], strict=True)}) == len(found)


def test_learned_probabilities_are_shown(run, plain):
    learned = run.rewire(threshold=0)
    pairs = zip(*learned.edge_index.tolist(), strict=True)
    probability = dict(zip(pairs, learned.edge_probability.tolist(), strict=True))
    for row in run.audit().edges.itertuples():
        assert row.probability == pytest.approx(probability[row.source, row.target])
    assert plain.audit().edges["probability"].isna().all()


def test_facts_by_hand(plain):
    row = plain.audit().edges.iloc[7]
    neighbors = [
        set(plain.data.edge_index[1, plain.data.edge_index[0] == node].tolist()) for node in (row.source, row.target)
    ]
    assert row.common_neighbors == len(neighbors[0] & neighbors[1])
    x = torch.nn.functional.normalize(plain.data.x, dim=1)
    assert row.similarity == pytest.approx(float(x[row.source] @ x[row.target]), abs=1e-5)
    assert row.source_known == bool(plain.data.train_mask[row.source, 0])


def test_labels_of_nodes_that_no_run_trained_on_are_not_used(plain):
    data = plain.data
    hidden = ~data.train_mask[:, 0]
    other = changed(data, y=torch.where(hidden, (data.y + 1) % GROUPS, data.y))
    again = replace(plain, trained_on=type(plain.trained_on)(other))
    for ours, theirs in zip(plain.audit().to_dict().values(), again.audit().to_dict().values(), strict=True):
        assert ours == theirs


def test_known_classes_are_labels_and_others_predictions(plain):
    predicted, y = plain.predict(), plain.data.y.tolist()
    for row in plain.audit().edges.itertuples():
        assert row.source_class == (y if row.source_known else predicted)[row.source]


def test_nodes_and_classes_have_their_names():
    data = changed(grouped(), node_ids=[f"n{k}" for k in range(GROUPS * GROUP)], class_names=["ant", "bee", "cow"])
    run = quick(data, "mlp", splits=[0])
    named = run.audit().edges
    numbered = on_other_data(run, changed(data, node_ids=None)).audit().edges
    assert named["source"].tolist() == [f"n{k}" for k in numbered["source"]]
    assert set(named["source_class"]) <= {"ant", "bee", "cow"}


def test_directed_edges_are_ranked_one_by_one():
    data = grouped()
    one_way = changed(data, edge_index=data.edge_index[:, data.edge_index[0] > data.edge_index[1]], undirected=False)
    run = quick(one_way, "gcn", settings={**TABLES, "data": {"undirected": False}}, splits=[0])
    found = run.audit().edges
    assert sorted(zip(found["source"], found["target"], strict=True)) == sorted(
        map(tuple, one_way.edge_index.T.tolist())
    )


def test_without_features_structure_alone_decides():
    run = quick(changed(grouped(), x=None), "gcn", splits=[0])
    found = run.audit()
    assert found.weights["similarity"] == 0
    assert len(found.missing) > 0


def test_plain_values_for_json(run):
    found = run.audit()
    shown = json.loads(json.dumps(found.to_dict(3), allow_nan=False))
    assert (len(shown["edges"]), len(shown["missing"])) == (3, 3)
    assert list(shown["weights"]) == ["affinity", "similarity", "common_neighbors"]


def test_no_edges():
    run = quick(changed(grouped(), edge_index=edges()), "mlp", splits=[0])
    with pytest.raises(DataError, match="this graph has no edges, so there is nothing to audit"):
        run.audit()
