"""How many replicas train at once: what one of them costs, measured, and what fits."""

import pytest
import torch

from gumbel_mpnn.nn import backbones
from gumbel_mpnn.training.memory import (
    SHARE_OF_FREE,
    group_size,
    group_size_of_a_cpu,
    plan_groups,
)
from helpers import make_settings, make_task, small_data
from measured_memory import (
    EACH_MODEL,
    EACH_OPTION,
    EACH_SHAPE,
    FEW_ARCS,
    MANY_FEATURES,
    SPECIAL,
    bytes_of_one_more,
    peak_bytes_on_cpu,
    settings_for,
    task_for,
)

MOST_ABOVE = 2.5


@pytest.mark.parametrize(("each", "budget", "expected"), [(100, 1000, 8), (100, 100, 1), (100, 0, 1), (0, 50, 40)])
def test_group_size_is_what_fits_and_at_least_one(each, budget, expected):
    assert SHARE_OF_FREE == 0.8
    assert group_size(each, budget) == expected


@pytest.mark.parametrize(
    ("nodes", "width", "expected"), [(24, 64, 5461), (48, 64, 2730), (24, 128, 2730), (24, 2**20, 1)]
)
def test_a_cpus_groups_have_no_large_hidden_layer(nodes, width, expected):
    assert group_size_of_a_cpu(width, nodes) == expected


def needed(model="gcn", task=None, **options):
    return plan_groups(make_settings(model, options), make_task() if task is None else task, 0)[1]


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


def assert_estimate_holds(settings, shape, folder):
    """The estimate is never below what one more replica takes, and not so far above that memory lies idle."""
    make_task_anew = task_for(settings, shape)
    measured = bytes_of_one_more(lambda count: peak_bytes_on_cpu(make_task_anew(), settings, count, folder))
    assert measured > 0
    assert measured <= plan_groups(settings, make_task_anew(), 0)[1] <= MOST_ABOVE * measured


@pytest.mark.parametrize(("shape", "width"), EACH_SHAPE, ids=str)
@pytest.mark.parametrize("model", EACH_MODEL)
def test_the_estimate_is_what_a_replica_takes_on_any_graph(model, shape, width, tmp_path):
    assert_estimate_holds(settings_for(model, width), shape, tmp_path)


@pytest.mark.parametrize("options", EACH_OPTION, ids=str)
@pytest.mark.parametrize("model", EACH_MODEL)
def test_the_estimate_is_what_a_replica_takes_with_any_option(model, options, tmp_path):
    assert_estimate_holds(settings_for(model, options), FEW_ARCS, tmp_path)


@pytest.mark.parametrize(("model", "options", "rewiring", "shape"), SPECIAL, ids=str)
def test_the_estimate_is_what_a_replica_takes_with_options_of_one_model(model, options, rewiring, shape, tmp_path):
    assert_estimate_holds(settings_for(model, options, rewiring), shape, tmp_path)


@pytest.mark.parametrize("model", EACH_MODEL)
def test_the_estimate_is_what_a_replica_takes_in_16_bits(model, tmp_path):
    """The features are then made short for every replica."""
    assert_estimate_holds(settings_for(model, {"hidden_channels": 8}, bfloat16=True), MANY_FEATURES, tmp_path)


def test_the_estimate_draws_nothing_from_torchs_generator():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    needed()
    assert torch.equal(torch.rand(1), expected)
