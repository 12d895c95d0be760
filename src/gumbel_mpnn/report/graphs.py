"""What plots and pages show of the graphs of a run: names of nodes and classes, pairs of nodes, and degrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from gumbel_mpnn.graph import pair_key
from gumbel_mpnn.graph import pairs_of as pairs_of_keys
from gumbel_mpnn.measures import node_degrees, undirected_edges
from gumbel_mpnn.measures.structure import directed_edges
from gumbel_mpnn.runs.run import Run

WHOLE_DEGREES = 30
"""Up to this degree there is a bar for each degree, above it the widths grow."""


def node_ids(data: Data) -> list[str]:
    """Names of the nodes: their ids, or their numbers if they have none."""
    return [str(name) for name in data.get("node_ids") or range(int(data.num_nodes or 0))]


def class_names(data: Data, count: int) -> list[str]:
    """Names of `count` classes: their numbers if they have none."""
    return [str(name) for name in data.get("class_names") or range(count)][:count]


def pairs_of(run: Run) -> pd.DataFrame:
    """Given edges and candidates of the training graph, a row for each pair of distinct nodes.

    The columns are `source` and `target` (on an undirected graph the larger node), whether the pair is `given`, its
    `probability`, 1 or 0 for models that learn none, and whether it is an edge after rewiring, `learned`.
    """
    data, undirected = run.data, run.settings.data.undirected
    if run.settings.rewiring is not None:
        graph = run.rewire(threshold=0).cpu()
        source, target = graph.edge_index
        once = source < target if undirected else source != target
        ends, given, probability = graph.edge_index[:, once], graph.edge_origin[once], graph.edge_probability[once]
    else:
        edges_of, count = undirected_edges if undirected else directed_edges, int(data.num_nodes or 0)
        before, after = (pair_key(edges_of(graph), count) for graph in (data, run.rewire() if run.rewires else data))
        keys = torch.cat([before, after]).unique()
        ends, given, probability = pairs_of_keys(keys, count), torch.isin(keys, before), torch.isin(keys, after)
    table = pd.DataFrame(ends.numpy().T, columns=["source", "target"])
    table = table.assign(given=given.numpy(), probability=probability.double().numpy())
    return table.assign(learned=table["probability"] >= 0.5)


def degree_histograms(before: Data, after: Data) -> dict[str, Any]:
    """Numbers of nodes by degree over the same bins (each up to the next), mean degrees, and isolated nodes."""
    degrees = [node_degrees(graph).cpu().numpy() for graph in (before, after)]
    most = int(max(degree.max(initial=0) for degree in degrees))
    bins = np.arange(min(most, WHOLE_DEGREES) + 2)
    if most > WHOLE_DEGREES:
        bins = np.unique([0, *np.geomspace(1, most + 1, WHOLE_DEGREES).round().astype(int)])
    counts = [np.histogram(degree, bins)[0].tolist() for degree in degrees]
    return {
        "bins": bins.tolist(),
        "before": counts[0],
        "after": counts[1],
        "mean": [round(float(degree.mean()), 3) for degree in degrees],
        "isolated": [int((degree == 0).sum()) for degree in degrees],
    }
