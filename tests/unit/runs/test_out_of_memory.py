"""What does not fit into memory is told in a sentence, before anything is allocated for it."""

import pytest
import torch

from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.training.trainer import Trainer
from gumbel_mpnn.util.errors import TooLargeError, UserError, is_out_of_memory
from helpers import small_data
from quick_fit import fit

HUGE = {
    "width": ("gcn", {"model": {"hidden_channels": 200_000, "num_layers": 9}}),
    "scorer": ("gumbel-mpnn", {"rewiring": {"scorer": "bilinear", "scorer.channels": 10**7}}),
    "decoys": ("gumbel-mpnn", {"rewiring": {"scorer": {"name": "neighborhood", "decoys": 1e15}}}),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_run_that_does_not_fit_is_refused_before_training(name, no_training):
    model, settings = HUGE[name]
    no_training()
    with pytest.raises(UserError, match=rf"^one run of {model} on .* does not fit .* cpu: try a smaller model\.hidden"):
        fit(small_data(), model, settings=settings, device="cpu")


def test_the_allocator_of_a_cpu_is_caught(monkeypatch):
    """The memory is really asked for: an estimate cannot know what others take meanwhile."""
    groups = []

    def step(self):
        groups.append(len(self.places))
        torch.empty(2**60, dtype=torch.uint8)

    monkeypatch.setattr(Trainer, "step", step)
    with pytest.raises(
        TooLargeError, match=r"does not fit into the memory of cpu: try a smaller model\.hidden_channels"
    ):
        fit(small_data(), "gcn", settings={"train": {"epochs": 2}}, device="cpu", splits=[0, 1], seeds=2)
    assert groups[0] == 4
    assert groups[-1] == 1


def test_other_errors_are_not_taken_for_missing_memory():
    assert not is_out_of_memory(RuntimeError("the size of tensor a must match"))
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(torch.OutOfMemoryError())


def test_a_billion_seeds_are_refused_at_once():
    with pytest.raises(UserError, match="1000000000 seeds are too many"):
        RunSpec.of(small_data(), "gcn", seeds=10**9)
    assert len(RunSpec.of(small_data(), "gcn", seeds=1000).seeds) == 1000
