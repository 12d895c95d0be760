"""How the nodes of a batch are grouped and cut."""

import torch
from torch_geometric.data import Data

from gumbel_mpnn.candidates import blocks
from gumbel_mpnn.candidates.blocks import Block, blocks_of


def groups(*sizes):
    batch = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return [
        (block.start, block.stop, block.graph, None if block.graph_of is None else block.graph_of.tolist())
        for block in blocks_of(Data(batch=batch, num_nodes=len(batch)))
    ]


def test_without_a_batch_there_is_one_block():
    assert [(block.start, block.stop) for block in blocks_of(Data(num_nodes=7))] == [(0, 7)]


def test_small_graphs_are_put_together(monkeypatch):
    monkeypatch.setattr(blocks, "SMALL", 5)
    assert groups(2, 3, 1, 9, 4, 1) == [
        (0, 5, 0, [0, 0, 1, 1, 1]),
        (5, 6, 2, None),
        (6, 15, 3, None),
        (15, 20, 4, [4, 4, 4, 4, 5]),
    ]


def test_graphs_without_nodes_are_passed_over(monkeypatch):
    monkeypatch.setattr(blocks, "SMALL", 4)
    assert groups(0, 3, 0, 0, 2, 2, 0, 5) == [(0, 3, 1, None), (3, 7, 4, [4, 4, 5, 5]), (7, 12, 7, None)]


def test_chunks_are_few_and_about_as_long():
    assert Block(10, 20).chunks(4) == [(10, 13), (13, 16), (16, 20)]
    assert Block(10, 20).chunks(10) == [(10, 20)]
    assert Block(0, 3).chunks(0) == [(0, 1), (1, 2), (2, 3)]
