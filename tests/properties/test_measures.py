"""The measures against their definitions, written out slowly, on random graphs."""

import math
from collections import Counter

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gumbel_mpnn import measures
from helpers import edges


@st.composite
def graphs(draw):
    """Up to nine nodes with labels or without, any edges among them, self-loops and duplicates too."""
    nodes = draw(st.integers(1, 9))
    end = st.integers(0, nodes - 1)
    listed = draw(st.lists(st.tuples(end, end), max_size=25))
    y = draw(st.lists(st.integers(-1, 2), min_size=nodes, max_size=nodes))
    return Data(edge_index=edges(*listed), y=torch.tensor(y), num_nodes=nodes)


def counted(data, convention):
    """The edges as a plain list, each once or as listed."""
    listed = [tuple(sorted(pair)) for pair in data.edge_index.T.tolist()]
    return listed if convention == "as_listed" else sorted({pair for pair in listed if pair[0] != pair[1]})


def slow_homophily(data, convention):
    """Edge homophily, adjusted homophily and label informativeness by the paper's formulas."""
    y = data.y.tolist()
    pairs = [(y[a], y[b]) for a, b in counted(data, convention) if y[a] >= 0 and y[b] >= 0]
    if not pairs:
        return [math.nan] * 3
    same = sum(a == b for a, b in pairs) / len(pairs)
    degree = Counter(label for pair in pairs for label in pair)
    share = {label: count / (2 * len(pairs)) for label, count in degree.items()}
    if len(share) == 1:
        return [same, math.nan, math.nan]
    squares = sum(p**2 for p in share.values())
    both = Counter(pair for a, b in pairs for pair in ((a, b), (b, a)))
    joint = {pair: count / (2 * len(pairs)) for pair, count in both.items()}
    information = sum(p * math.log(p / (share[a] * share[b])) for (a, b), p in joint.items())
    entropy = -sum(p * math.log(p) for p in share.values())
    return [same, (same - squares) / (1 - squares), information / entropy]


def slow_distribution(data, node, own_label):
    around = {a if b == node else b for a, b in counted(data, "coalesced") if node in (a, b)}
    labels = [int(data.y[k]) for k in [*around, *([node] if own_label else [])] if data.y[k] >= 0]
    classes = max(int(data.y.max()) + 1, 0)
    return [labels.count(label) / max(len(labels), 1) for label in range(classes)]


@settings(max_examples=150, deadline=None)
@given(graphs(), st.sampled_from(measures.CONVENTIONS))
def test_homophily(data, convention):
    functions = (measures.edge_homophily, measures.adjusted_homophily, measures.label_informativeness)
    found = [function(data, convention) for function in functions]
    assert found == pytest.approx(slow_homophily(data, convention), nan_ok=True, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(graphs(), st.booleans())
def test_neighborhoods_and_their_spread(data, own_label):
    slow = [slow_distribution(data, node, own_label) for node in range(data.num_nodes)]
    assert measures.neighborhood_distributions(data, own_label).tolist() == pytest.approx(np.array(slow))
    spreads = []
    for label in range(max(int(data.y.max()) + 1, 0)):
        members = [row for row, y in zip(slow, data.y.tolist(), strict=True) if y == label and sum(row) > 0]
        if len(members) > 1:
            spreads.append(np.std(members, axis=0, ddof=1).mean())
    expected = np.mean(spreads) if spreads else math.nan
    assert measures.std_per_class(data, own_label) == pytest.approx(expected, nan_ok=True, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_structure_against_networkx(data):
    graph = networkx.Graph(counted(data, "coalesced"))
    graph.add_nodes_from(range(data.num_nodes))
    degree = [graph.degree[node] for node in range(data.num_nodes)]
    assert measures.node_degrees(data).tolist() == degree
    assert measures.num_edges(data) == graph.number_of_edges()
    assert measures.num_components(data) == networkx.number_connected_components(graph)
    nodes = range(data.num_nodes)
    known = np.sort(np.linalg.eigvalsh(networkx.normalized_laplacian_matrix(graph, nodelist=nodes).toarray()))
    expected = known[1] if data.num_nodes > 1 else math.nan
    assert measures.spectral_gap(data) == pytest.approx(expected, nan_ok=True, abs=1e-9)
