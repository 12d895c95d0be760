"""Belief heads that are each trained without one part of the training nodes."""

import torch

from gumbel_mpnn.config import resolve
from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.rewiring.edge_models import FoldedBeliefHead
from gumbel_mpnn.rewiring.edge_models.folds import fold_of
from gumbel_mpnn.training import build_model, models, train
from helpers import make_task, normal, replicas, small_data

NODES, FEATURES, CLASSES, FOLDS = 12, 5, 3, 3
FOLD = fold_of(NODES, FOLDS, torch.device("cpu"))
LOGITS = normal(2, FOLDS, NODES, CLASSES).float()
TRAIN = torch.arange(NODES).expand(2, -1) % 2 == 0


def head():
    made = FoldedBeliefHead(2, FEATURES, CLASSES, FOLDS)
    made.init_parameters(ReplicaRNG([1, 2], "init"))
    return made.eval()


def test_every_fold_has_its_share_of_the_nodes():
    assert FOLD.bincount().tolist() == [4, 4, 4]


def test_a_training_node_has_the_beliefs_of_the_head_that_does_not_know_it():
    beliefs, each = head().beliefs(LOGITS, TRAIN), LOGITS.softmax(-1)
    for node in range(NODES):
        wanted = each[:, FOLD[node], node] if TRAIN[0, node] else each[:, :, node].mean(1)
        torch.testing.assert_close(beliefs[:, node], wanted)
    torch.testing.assert_close(head().beliefs(LOGITS), each.mean(1))


def test_no_head_learns_from_its_own_fold():
    made, y = head(), torch.arange(NODES) % CLASSES
    logits = made(normal(NODES, FEATURES).float(), ReplicaRNG([1, 2], "train"))
    assert logits.shape == (2, FOLDS, NODES, CLASSES)
    logits = logits.detach().requires_grad_()
    made.loss(logits, y, TRAIN).sum().backward()
    learns = logits.grad.abs().sum(-1) > 0
    for fold in range(FOLDS):
        assert torch.equal(learns[:, fold], TRAIN & (fold != FOLD))


def test_the_labels_of_a_training_node_do_not_reach_its_own_beliefs():
    """After a step on changed labels of one node, the beliefs of others have changed, but not its own."""
    data = small_data()
    mask, changed = data.train_mask[None] if data.train_mask.dim() == 1 else data.train_mask.T[:1], data.y.clone()
    node = int(mask[0].nonzero()[0])
    changed[node] = (changed[node] + 1) % int(data.y.max() + 1)
    found = []
    for y in (data.y, changed):
        made = FoldedBeliefHead(1, data.num_features, int(data.y.max()) + 1, FOLDS)
        made.init_parameters(ReplicaRNG([1], "init"))
        made.eval()
        rng = ReplicaRNG([1], "train")
        made.loss(made(data.x, rng), y, mask).sum().backward()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter -= 0.1 * parameter.grad
            found.append(made.beliefs(made(data.x, rng), mask))
    differs = (found[0] != found[1]).any(-1)[0]
    assert not differs[node]
    assert differs.any()


def test_a_model_is_trained_with_as_many_heads_as_it_is_told():
    where = make_task(small_data())
    tables = {"model": {"hidden_channels": 8}, "train": {"epochs": 3}, "rewiring": {"belief_folds": FOLDS}}
    settings = resolve("own", "gumbel-mpnn", tables, models.complete, rewires=True)
    before = build_model(settings, where, replicas((0, 1))).state_dict()
    after = train(where, settings, replicas((0, 1)))[0].state
    heads = [name for name in before if name.startswith("belief_head.") and name.endswith("out.weight")]
    assert len(heads) == FOLDS
    assert not any(torch.equal(before[name], after[name]) for name in heads)
