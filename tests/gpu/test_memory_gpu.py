"""The estimate of what one more replica costs, against what it takes on a CUDA device."""

import pytest
import torch

from gumbel_mpnn.training import replay
from gumbel_mpnn.training.memory import plan_groups
from measured_memory import (
    EACH_MODEL,
    EACH_OPTION,
    EACH_SHAPE,
    FEW_ARCS,
    SPECIAL,
    bytes_of_one_more,
    peak_bytes_on_gpu,
    settings_for,
    task_for,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here"),
]

LARGER = 10
"""How many times more nodes and edges than on a CPU: a CUDA device gives out memory in larger pieces."""
MOST_ABOVE = 6.0
"""Kernels that do several things at once leave less behind than the CPU's way, for which the estimate has room."""
EPOCHS = replay.WARM_UP + 2
"""So many that steps and evaluations are captured and replayed."""


def assert_estimate_holds(settings, shape):
    """The estimate is never below what one more replica takes, and not so far above that memory lies idle."""
    shape = {**shape, "nodes": LARGER * shape["nodes"], "edges": LARGER * shape["edges"]}
    make_task = task_for(settings, shape, "cuda")
    # Kernels compiled and workspaces allocated once are no part of what a replica takes.
    peak_bytes_on_gpu(make_task(), settings, 1)
    measured = bytes_of_one_more(lambda count: peak_bytes_on_gpu(make_task(), settings, count))
    assert measured > 0
    assert measured <= plan_groups(settings, make_task(), 0)[1] <= MOST_ABOVE * measured


@pytest.mark.parametrize(("shape", "width"), EACH_SHAPE, ids=str)
@pytest.mark.parametrize("model", EACH_MODEL)
def test_the_estimate_is_what_a_replica_takes_on_any_graph(model, shape, width):
    assert_estimate_holds(settings_for(model, width, epochs=EPOCHS), shape)


@pytest.mark.parametrize("options", EACH_OPTION, ids=str)
@pytest.mark.parametrize("model", EACH_MODEL)
def test_the_estimate_is_what_a_replica_takes_with_any_option(model, options):
    assert_estimate_holds(settings_for(model, options, epochs=EPOCHS), FEW_ARCS)


@pytest.mark.parametrize(("model", "options", "rewiring", "shape"), SPECIAL, ids=str)
def test_the_estimate_is_what_a_replica_takes_with_options_of_one_model(model, options, rewiring, shape):
    assert_estimate_holds(settings_for(model, options, rewiring, epochs=EPOCHS), shape)
