"""`run.audit`: which edges it suspects, which it misses; `run.measure_pairs`: when a learned graph is overfitting."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.runs.audit import measure_pairs
from gumbel_mpnn.runs.store import Learned
from gumbel_mpnn.util.errors import DataError
from helpers import both_ways, changed, edges
from quick_fit import TABLES, on_other_data, quick

GROUP, GROUPS, WRONG = 20, 3, 5
LONGER = {**TABLES, "train": {"lr": 0.05, "epochs": 30}}
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
    return quick(grouped(), "gumbel-mpnn", settings=LONGER, splits=[0])


@pytest.fixture(scope="module")
def plain():
    return quick(grouped(), "gcn", settings=LONGER, splits=[0])


@pytest.mark.parametrize("which", ["run", "plain"])
def test_edges_between_groups_come_first_and_missing_ones_are_within(which, request):
    run = request.getfixturevalue(which)
    found = run.audit()
    assert list(found.edges.columns) == list(found.missing.columns) == COLUMNS
    first = found.edges.head(WRONG)
    assert {(row.source // GROUP, row.target // GROUP) for row in first.itertuples()} == {(0, 1)}
    assert found.edges["evidence"].is_monotonic_increasing
    assert found.missing["evidence"].is_monotonic_decreasing
    top = found.missing.head(10)
    assert (top["source"] // GROUP == top["target"] // GROUP).all()
    given = {tuple(sorted(pair)) for pair in run.data.edge_index.T.tolist()}
    assert pairs_of(found.missing).isdisjoint(given)
    assert pairs_of(found.edges) == given
    assert len(found.edges) == len(given)


def pairs_of(table):
    return {tuple(sorted(pair)) for pair in zip(table["source"], table["target"], strict=True)}


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


# Split 0 trains on nodes 0 to 3, split 1 on nodes 4 to 7. Even and odd nodes are of two classes.
Y = torch.arange(8) % 2
MASK = torch.stack([torch.arange(8) < 4, torch.arange(8) >= 4], dim=1)
GRAPH = PairGraph.build(edges((0, 1), (0, 2), (4, 5), (4, 6), (3, 4)), 8, undirected=True)
DATA = Data(edge_index=edges((0, 1)), y=Y, train_mask=MASK, num_nodes=8)


def learned(*dropped):
    """Learned graphs that lack one edge each."""
    rows = []
    for pair in dropped:
        missing = (torch.tensor(pair) == GRAPH.pair_index.T).all(1)
        rows.append(torch.where(missing, 0.1, 0.9))
    return Learned(GRAPH, torch.stack(rows))


def test_every_run_has_its_own_graph_and_its_own_split():
    found = measure_pairs(learned((0, 1), (4, 5)), DATA, [0, 1])
    inside = found.kinds["train_train"]
    assert (inside.before["num_edges"], inside.after["num_edges"]) == (2, 1)
    assert (inside.before["edge_homophily"], inside.after["edge_homophily"]) == (0.5, 1.0)
    assert (inside.change.mean, inside.change.std, found.runs) == (0.5, 0.0, 2)
    assert found.kinds["other_other"].change.mean == 0
    assert found.kinds["train_other"].after["edge_homophily"] == 0.0
    assert found.overfits
    assert found.sentence() == (
        "edge homophily changes by +0.500 among training nodes but by +0.000 among other nodes: the improvement is on"
        " training nodes alone, that is overfitting"
    )


@pytest.mark.parametrize(
    ("dropped", "change", "std"),
    [
        (((4, 5), (0, 1)), 0.0, 0.0),  # better among other nodes, which is what one wants
        (((0, 1), (4, 6)), 0.0, 0.5**0.5),  # +1/2 and −1/2 among training nodes: the mean is within the spread
        (((0, 1), (0, 1)), 0.25, 0.125**0.5),  # in one of two runs
    ],
    ids=str,
)
def test_what_is_not_overfitting(dropped, change, std):
    found = measure_pairs(learned(*dropped), DATA, [0, 1])
    inside = found.kinds["train_train"].change
    assert (inside.mean, inside.std) == pytest.approx((change, std))
    assert not found.overfits
    assert found.sentence() == ""


def test_pairs_that_do_not_exist_say_nothing():
    found = measure_pairs(learned((3, 4)), Data(y=Y, train_mask=MASK[:, :1] | True, num_nodes=8), [0])
    assert found.kinds["other_other"].change.n == 0
    assert not found.overfits
    assert found.to_dict()["other_other"]["homophily_change"] is None


def test_measures_of_a_run():
    run = quick(model="gumbel-mpnn", settings=TABLES)
    found = run.measure_pairs()
    assert found.runs == 2
    graphs = list(run.graphs())
    means = [
        gm.measures.training_pairs(graph, graph.train_mask[:, split])["train_other"]["num_edges"]
        for split, graph in enumerate(graphs)
    ]
    assert found.kinds["train_other"].after["num_edges"] == sum(means) / 2
    with pytest.raises(gm.UserError, match="model 'gcn' learns no graph"):
        quick().measure_pairs()
