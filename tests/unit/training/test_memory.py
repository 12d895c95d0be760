import pytest
import torch

from gumbel_mpnn.nn import backbones
from gumbel_mpnn.training.memory import (
    SHARE_OF_FREE,
    bytes_per_replica,
    group_size,
    group_size_of_a_cpu,
)
from helpers import make_settings, make_task, small_data


@pytest.mark.parametrize(("each", "budget", "expected"), [(100, 1000, 8), (100, 100, 1), (100, 0, 1), (0, 50, 40)])
def test_group_size_is_what_fits_and_at_least_one(each, budget, expected):
    assert SHARE_OF_FREE == 0.8
    assert group_size(each, budget) == expected


@pytest.mark.parametrize(
    ("nodes", "width", "expected"), [(24, 64, 5461), (48, 64, 2730), (24, 128, 2730), (24, 2**20, 1)]
)
def test_a_cpus_groups_have_no_large_hidden_layer(nodes, width, expected):
    settings = make_settings("gcn", {"hidden_channels": width})
    assert group_size_of_a_cpu(settings, make_task(small_data(nodes=nodes))) == expected


def needed(model="gcn", task=None, **options):
    return bytes_per_replica(make_settings(model, options), make_task() if task is None else task)


@pytest.mark.parametrize(
    "more",
    [
        {"hidden_channels": 16},
        {"num_layers": 3},
        {"residual": True},
        {"input_layer": True},
        {"input_dropout": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("model", list(backbones))
def test_a_larger_model_needs_more(model, more):
    assert needed(model, **more) > needed(model)


def test_heads_and_larger_graphs_need_more():
    assert needed("gat", heads=4) > needed("gat", heads=2) > needed("gcn")
    assert needed(task=make_task(small_data(nodes=48))) > needed()


@pytest.mark.parametrize("model", list(backbones))
def test_the_estimate_covers_parameters_and_activations(model):
    wide = needed(model, hidden_channels=256, num_layers=3)
    assert wide > 4 * (24 * 256 * 3 + 4 * (6 * 256 + 2 * 256 * 256))


def test_the_estimate_draws_nothing_from_torchs_generator():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    needed()
    assert torch.equal(torch.rand(1), expected)
