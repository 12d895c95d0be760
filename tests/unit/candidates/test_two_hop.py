"""Random draws from two-hop neighborhoods: uniform and repeatable."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.candidates import TwoHop, two_hop
from gumbel_mpnn.graph import PairGraph
from gumbel_mpnn.nn.replica_rng import derive_seed
from helpers import edges, random_edges

# Node 0 has the neighbors 1 to 4; 5 can be reached from it through all of them, 6 to 10 through one each.
MANY_PATHS = PairGraph.build(
    edges(
        (0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (5, 1), (5, 2), (5, 3), (5, 4), *((other, 1) for other in range(6, 11))
    ),
    11,
)


def test_nodes_are_drawn_once_each_and_all_equally_often():
    seeds = 1200
    drawn = np.stack([two_hop.draw(MANY_PATHS, 2, seed)[0] for seed in range(seeds)])
    assert (drawn[:, 0] != drawn[:, 1]).all()
    times = np.bincount(drawn.ravel(), minlength=11)
    assert times[:5].sum() == 0
    # Each of six is drawn with probability 1/3: 400 times, with a standard deviation of 16.
    assert abs(times[5:] - seeds / 3).max() < 80


def test_nodes_draw_independently():
    star = PairGraph.build(edges(*((0, leaf) for leaf in range(1, 200))), 200)
    drawn = two_hop.draw(star, 1, seed=0)[1:, 0]
    assert np.bincount(drawn).max() < 8


def test_where_there_are_too_few_all_are_drawn():
    drawn = two_hop.draw(MANY_PATHS, 9, seed=3)[0]
    assert sorted(drawn[:6]) == [5, 6, 7, 8, 9, 10]
    assert (drawn[6:] == -1).all()


def test_fewer_draws_are_the_first_of_more():
    assert (two_hop.draw(MANY_PATHS, 4, seed=1)[:, :2] == two_hop.draw(MANY_PATHS, 2, seed=1)).all()


def test_the_seed_decides():
    data = Data(edge_index=random_edges(100, 300), num_nodes=100)
    assert torch.equal(TwoHop(seed=1)(data).candidate_index, TwoHop(seed=1)(data).candidate_index)
    assert not torch.equal(TwoHop(seed=1)(data).candidate_index, TwoHop(seed=2)(data).candidate_index)


def scramble(value):
    """SplitMix64's last step in whole numbers of Python."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ (value >> shift)) * factor % 2**64
    return value ^ (value >> 31)


@pytest.mark.parametrize("seed", [0, 1, -5, 2**70])
def test_those_with_the_smallest_hashes_are_drawn(seed):
    stream = scramble(0 + derive_seed(seed, "two_hop"))
    expected = sorted(range(5, 11), key=lambda other: scramble(stream ^ other))
    assert two_hop.draw(MANY_PATHS, 4, seed)[0].tolist() == expected[:4]
