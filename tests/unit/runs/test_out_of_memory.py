"""What does not fit into memory is told in a sentence, before anything is allocated for it."""

import pytest
import torch

from gumbel_mpnn._util.errors import TooLargeError, UserError, is_out_of_memory
from gumbel_mpnn.config import Replica
from gumbel_mpnn.nn.backbone import GCN
from gumbel_mpnn.runs import RunSpec
from gumbel_mpnn.training import Task, memory
from gumbel_mpnn.training.trainer import Trainer
from helpers import make_settings, make_task, small_data
from quick_fit import fit

HUGE = {
    "model.hidden_channels": ("gcn", {"model": {"hidden_channels": 200_000, "num_layers": 9}}),
    "rewiring.channels": ("gumbel-mpnn", {"rewiring": {"channels": 10**12, "scorer": "bilinear"}}),
    "rewiring.decoys": ("gumbel-mpnn", {"rewiring": {"decoys": 1e15}}),
}


@pytest.mark.parametrize("name", HUGE)
def test_the_largest_value_that_fits_is_named(name, no_training):
    model, settings = HUGE[name]
    no_training()
    with pytest.raises(UserError, match=rf"^one run of {model} on .* does not fit .* cpu: {name}=[\d.]+ fits$") as told:
        fit(small_data(), model, settings=settings, device="cpu")
    value = float(str(told.value).rpartition("=")[2].split()[0])
    table, _, key = name.partition(".")
    smaller = {**settings, table: {**settings[table], key: value if key == "decoys" else int(value)}}
    chosen = RunSpec.of(small_data(), model, settings=smaller).settings
    task = Task.for_model(small_data(), chosen)
    memory.check_fits(chosen, task, memory.bytes_per_replica(memory.outline_model(chosen, task), chosen, task))


def test_an_estimate_that_is_a_little_too_large_is_tried():
    settings, task = make_settings(), make_task()
    each = memory.bytes_per_replica(memory.outline_model(settings, task), settings, task)
    memory.check_fits(settings, task, each // 2)
    with pytest.raises(UserError, match=r"model\.hidden_channels=\d+ fits"):
        memory.check_fits(make_settings(options={"hidden_channels": 2**15}), task, 100 * each)
    with pytest.raises(UserError, match=r"smaller model\.hidden_channels"):
        memory.check_fits(settings, task, 1)


def test_an_outline_has_the_shapes_of_the_model_and_no_memory():
    outline = memory.outline_model(make_settings(), make_task())
    real = Trainer(make_task(), make_settings(), [Replica(0, 0)]).model
    assert {name: value.shape for name, value in outline.state_dict().items()} == {
        name: value.shape for name, value in real.state_dict().items()
    }
    assert {value.device.type for value in outline.parameters()} == {"meta"}


def test_a_model_that_needs_real_tensors_is_built(monkeypatch):
    make = GCN.make_conv
    # Reading a number fails on the meta device.
    monkeypatch.setattr(GCN, "make_conv", lambda *arguments: float(torch.ones(())) and make(*arguments))
    outline = memory.outline_model(make_settings(), make_task())
    assert {value.device.type for value in outline.parameters()} == {"cpu"}


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
