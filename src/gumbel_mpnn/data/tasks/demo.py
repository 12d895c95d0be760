"""The demo graph: a few homophilous edges among several times as many random ones."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from gumbel_mpnn.data.raw import IntArray, set_masks
from gumbel_mpnn.data.splits import random_masks

NUM_NODES = 1000
NUM_CLASSES = 4
NUM_FEATURES = 16
CORE_DEGREE = 4  # mean number of core edges per node
CORE_HOMOPHILY = 0.8  # fraction of core edges that are drawn within a class
NOISE_DEGREE = 16  # mean number of random edges per node
CLASS_DISTANCE = 2.0  # distance of class means from the origin, in standard deviations of a feature


def demo_graph(seed: int = 0) -> Data:
    """Generate a graph on which a GCN is no better than an MLP, because most of its edges are random.

    The graph has four classes with overlapping Gaussian features, and ten splits with 20 training and 30 validation
    nodes per class. `edge_is_core`, bool [E], marks the homophilous edges; models never see it.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(NUM_NODES) % NUM_CLASSES
    directions, _ = np.linalg.qr(rng.normal(size=(NUM_FEATURES, NUM_CLASSES)))
    x = rng.normal(size=(NUM_NODES, NUM_FEATURES)) + CLASS_DISTANCE * directions.T[y]

    core = _pairs(rng, CORE_DEGREE, CORE_HOMOPHILY)
    edges = np.concatenate([core, _pairs(rng, NOISE_DEGREE, homophily=0.0)])
    edges.sort(axis=1)
    edges, first = np.unique(edges, axis=0, return_index=True)
    proper = edges[:, 0] != edges[:, 1]
    edges, is_core = edges[proper], first[proper] < len(core)

    both = np.concatenate([edges, edges[:, ::-1]])
    order = np.lexsort((both[:, 1], both[:, 0]))
    data = Data(
        x=torch.from_numpy(x.astype(np.float32)),
        edge_index=torch.from_numpy(both[order].T.copy()),
        y=torch.from_numpy(y),
        edge_is_core=torch.from_numpy(np.tile(is_core, 2)[order]),
        name="demo",
        metric="accuracy",
        protocol="per-class-20-30",
    )
    set_masks(data, random_masks(y, data.protocol, seed))
    return data


def _pairs(rng: np.random.Generator, mean_degree: int, homophily: float) -> IntArray:
    """Draw random pairs [E, 2] of nodes, this fraction of them within a class (the class of node i is i mod 4)."""
    size = NUM_NODES * mean_degree // 2
    source, target = rng.integers(NUM_NODES, size=(2, size))
    within = target - target % NUM_CLASSES + source % NUM_CLASSES
    return np.stack([source, np.where(rng.random(size) < homophily, within, target)], axis=1)
