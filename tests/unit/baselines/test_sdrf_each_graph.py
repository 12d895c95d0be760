"""SDRF on each graph of a disjoint union."""

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn import UserError
from gumbel_mpnn.baselines import SDRF, SDRFOfEachGraph
from gumbel_mpnn.data import leaf_count
from helpers import both_ways, edges

PATH = edges((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))


def two_paths() -> Data:
    """A path and, with its nodes interleaved, the same path in the other direction."""
    both = torch.cat([2 * PATH, 2 * PATH.flip(0) + 1], dim=1)
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)).repeat_interleave(2, dim=0)
    return Data(x=x, edge_index=both_ways(both), batch=torch.arange(12) % 2, y=torch.arange(12))


def test_every_graph_is_what_sdrf_makes_of_it_alone():
    data = two_paths()
    out = SDRFOfEachGraph(3)(data)
    alone = SDRF(3)(Data(x=data.x[::2], edge_index=both_ways(PATH)))
    for offset in (0, 1):
        mine = out.batch[out.edge_index[0]] == offset
        assert sorted((out.edge_index[:, mine] // 2).T.tolist()) == sorted(alone.edge_index.T.tolist())
        assert int(out.edge_origin[mine].sum()) == int(alone.edge_origin.sum())
    assert out.y is data.y
    assert not out.edge_origin.all()


def test_no_edge_joins_two_graphs_and_every_tree_changes():
    """The fault of the union: most steps are spent on a few trees."""
    data = leaf_count(3, num_trees=100)
    out = SDRFOfEachGraph(5)(data)
    ends = data.batch[out.edge_index]
    assert bool((ends[0] == ends[1]).all())
    new = torch.bincount(ends[0][~out.edge_origin], minlength=int(data.batch.max()) + 1)
    assert int(new.min()) > 0
    union = SDRF(5 * len(new))(data)
    assert int(torch.bincount(data.batch[union.edge_index[0][~union.edge_origin]], minlength=len(new)).min()) == 0


def test_wrong_graphs():
    with pytest.raises(UserError, match="no batch"):
        SDRFOfEachGraph()(Data(x=torch.ones(6, 1), edge_index=PATH))
    data = two_paths()
    data.edge_weight = torch.ones(data.num_edges)
    with pytest.raises(UserError, match="weights"):
        SDRFOfEachGraph()(data)
