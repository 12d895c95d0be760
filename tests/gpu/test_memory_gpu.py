"""The upper bound of what one more replica takes, against what it takes on a CUDA device."""

import pytest

from gumbel_mpnn.training import captured
from gumbel_mpnn.training.build import plan_groups
from measured_memory import CASES, bytes_of_one_more, peak_bytes_on_gpu, settings_for, task_for

LARGER = 10
"""How many times more nodes and edges than on a CPU: a CUDA device gives out memory in larger pieces."""
EPOCHS = captured.WARM_UP + 2
"""So many that steps and evaluations are captured and replayed."""


@pytest.mark.parametrize(("model", "options", "rewiring", "shape"), CASES, ids=str)
def test_the_upper_bound_is_above_what_a_replica_takes(model, options, rewiring, shape):
    settings = settings_for(model, options, rewiring, epochs=EPOCHS)
    larger = {**shape, "nodes": LARGER * shape["nodes"], "edges": LARGER * shape["edges"]}
    make_task = task_for(settings, larger, "cuda")
    # Kernels compiled and workspaces allocated once are no part of what a replica takes.
    peak_bytes_on_gpu(make_task(), settings, 1)
    measured = bytes_of_one_more(lambda count: peak_bytes_on_gpu(make_task(), settings, count))
    assert 0 < measured <= plan_groups(settings, make_task())[1]
