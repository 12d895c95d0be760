"""Many small graphs in one batch are as if each were alone: no candidate, pair or weight joins two of them."""

import pytest
import torch
from torch_geometric.data import Batch, Data

import gumbel_mpnn as gm
from gumbel_mpnn.data.export import is_directed
from gumbel_mpnn.rewiring.scorers import scorers
from helpers import edges, normal

each_scorer = pytest.mark.parametrize("scorer", list(scorers))


def small_graphs(sizes=(7, 1, 12, 9, 3)):
    generator = torch.Generator().manual_seed(1)
    return [
        Data(
            x=normal(size, 4, seed=size, dtype=torch.float32),
            edge_index=torch.randint(size, (2, 2 * size), generator=generator),
            y=torch.tensor([number % 2]),
        )
        for number, size in enumerate(sizes)
    ]


def model_for(scorer, **options):
    torch.manual_seed(0)
    model = gm.GumbelMPNN(in_channels=4, out_channels=2, hidden_channels=8, scorer=scorer, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.5)
    return model.eval()


@each_scorer
@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat"])
def test_a_batch_gets_the_predictions_of_its_graphs(scorer, backbone):
    graphs = [gm.candidates.Local(3)(graph) for graph in small_graphs()]
    model = model_for(scorer, backbone=backbone)
    together = model(Batch.from_data_list(graphs))
    torch.testing.assert_close(together, torch.cat([model(graph) for graph in graphs]))


def assert_learned(part, expected):
    """The same learned graph, whose candidates are among its edges and nowhere else."""
    assert set(part.keys()) - {"num_nodes"} == set(expected.keys()) - {"num_nodes"} >= {"x", "y", "edge_probability"}
    assert "candidate_index" not in part
    assert part.num_nodes == expected.num_nodes
    for name in ("x", "y", "edge_index", "edge_origin"):
        assert torch.equal(part[name], expected[name]), name
    for name in ("edge_weight", "edge_probability"):
        torch.testing.assert_close(part[name], expected[name])


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_learned_graph_of_a_batch_can_be_taken_apart(undirected, weighted):
    graphs = [gm.candidates.Local(3)(graph) for graph in small_graphs()]
    if weighted:
        for graph in graphs:
            graph.edge_weight = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(graph.num_nodes))
    batch, model = Batch.from_data_list(graphs), model_for("mixed")

    def rewire(data):
        return model.rewire(data, 0.4, gm.PairGraph.of(data, undirected=undirected))

    together, alone = rewire(batch), [rewire(graph) for graph in graphs]
    parts = together.to_data_list()
    assert len(parts) == together.num_graphs == len(graphs)
    for part, expected in zip(parts, alone, strict=True):
        assert_learned(part, expected)
        assert is_directed(part) is is_directed(expected)
    assert (~together.edge_origin).any()
    for part, graph in zip(batch.to_data_list(), graphs, strict=True):  # the batch itself is as it was
        assert torch.equal(part.edge_index, graph.edge_index)
        assert torch.equal(part.candidate_index, graph.candidate_index)
    again = model.rewire(together, 0.4)  # and a batch that was learned can be learned from
    assert sum(part.num_edges for part in again.to_data_list()) == again.num_edges


def test_directions_of_a_batch_are_told_for_each_of_its_graphs():
    one_edge = Data(x=torch.ones(2, 4), edge_index=edges((0, 1), (1, 0)))
    batch, model = Batch.from_data_list([one_edge, one_edge]), model_for("bilinear")
    learned = model.rewire(batch, 0.0, gm.PairGraph.of(batch, undirected=False))
    assert learned.undirected.tolist() == [False, False]
    for graph in (learned, *learned.to_data_list()):
        assert is_directed(graph)
        graph.edge_weight = graph.edge_probability = None  # the edges alone would not say so
        assert is_directed(graph)
