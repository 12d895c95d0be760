"""What scorers keep of a graph and its features never outlives them, nor the mode it was made in."""

import copy

import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn.rewiring.edge_models import scorers
from unit.rewiring.test_gumbel_mpnn import data_with_candidates, model_for

each_scorer = pytest.mark.parametrize("scorer", list(scorers))


@each_scorer
def test_features_that_are_learned(scorer):
    data = data_with_candidates()
    model = model_for(data, scorer=scorer, evaluation="expected").eval()
    with torch.no_grad():
        model(data)
    data.x = torch.nn.Parameter(data.x)
    with torch.no_grad():
        model(data)
    grads = []
    for _ in range(2):
        data.x.grad = None
        model(data).square().sum().backward()
        grads.append(data.x.grad)
    data.x.grad = None
    copy.deepcopy(model)(data).square().sum().backward()
    assert torch.equal(grads[0], data.x.grad)
    assert torch.equal(grads[1], data.x.grad)


@each_scorer
def test_features_changed_in_place(scorer):
    data = data_with_candidates()
    model = model_for(data, scorer=scorer).eval()
    before = model(data)
    data.x.neg_()[0] += 1
    after = model(data)
    assert not torch.equal(before, after)
    assert torch.equal(after, copy.deepcopy(model)(Data.from_dict(copy.deepcopy(data.to_dict()))))


@each_scorer
@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat"])
@pytest.mark.parametrize("evaluation", ["expected", "mean_of_samples"])
def test_training_after_a_look_in_inference_mode(scorer, backbone, evaluation):
    data = data_with_candidates()
    model = model_for(data, scorer=scorer, backbone=backbone, evaluation=evaluation, replicas=2)
    with torch.inference_mode():
        expected = model.eval()(data).clone()
    (model.train()(data).sum() + model.auxiliary_loss(data).sum()).backward()
    torch.testing.assert_close(model.eval()(data), expected)


@each_scorer
def test_replicas_on_a_graph_without_pairs(scorer):
    model = gm.GumbelMPNN(4, out_channels=2, hidden_channels=8, scorer=scorer, replicas=3)
    data = Data(x=torch.randn(5, 4), edge_index=torch.empty(2, 0, dtype=torch.int64))
    out, graph = model(data, return_graph=True)
    out.sum().backward()
    assert (out.shape, graph.weight.shape) == ((3, 5, 2), (3, 0))
    assert model.rewire(data).num_edges == 0
