import pytest
import torch

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.training.checkpoint import load_tensors, save_tensors


@pytest.fixture
def path(tmp_path):
    return tmp_path / "group" / "state.safetensors"


TENSORS = {
    "float": torch.tensor([[1.0, -2.5]]),
    "double": torch.tensor([0.1], dtype=torch.float64),
    "long": torch.tensor([2**40]),
    "bool": torch.tensor([True, False]),
    "bytes": torch.arange(5, dtype=torch.uint8),
    "scalar": torch.tensor(3.0),
    "empty": torch.empty(0, 3),
    "strided": torch.arange(6.0).view(2, 3).T,
}


def test_tensors_and_note_come_back(path):
    note = {"epoch": 3, "replicas": ["split0-seed0"], "value": None}
    save_tensors(path, TENSORS, note)
    tensors, read = load_tensors(path)
    assert read == note
    assert set(tensors) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor), name


def test_a_file_without_a_note(path):
    save_tensors(path, {"a": torch.ones(2, requires_grad=True)})
    tensors, note = load_tensors(path)
    assert note == {}
    assert not tensors["a"].requires_grad


def test_loaded_tensors_outlive_the_file(path):
    save_tensors(path, {"a": torch.ones(1000)})
    tensors, _ = load_tensors(path)
    save_tensors(path, {"a": torch.zeros(1000)})
    tensors["a"] += 1
    assert torch.equal(tensors["a"], torch.full((1000,), 2.0))
    path.unlink()
    assert torch.equal(tensors["a"], torch.full((1000,), 2.0))


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:4],
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: b"\xff" * len(content),
        lambda content: b"not a checkpoint at all",
        lambda content: content.replace(b"F32", b"F99"),
    ],
    ids=["empty", "no header", "half", "last byte", "noise", "text", "header"],
)
def test_a_damaged_file_is_a_data_error(path, damage):
    save_tensors(path, TENSORS, {"epoch": 3})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=r"^cannot read .*state\.safetensors: .*; delete it to train this run again$"):
        load_tensors(path)


def test_a_missing_file_is_a_data_error(path):
    with pytest.raises(DataError, match=r"cannot open .*: No such file or directory; check its permissions"):
        load_tensors(path)
