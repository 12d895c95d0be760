"""Data that are read once for the runs that follow each other on them."""

import pytest

from gumbel_mpnn.runs import spec
from gumbel_mpnn.runs.spec import DataReader, read_data
from gumbel_mpnn.settings import DataSettings
from gumbel_mpnn.training import data_hash
from gumbel_mpnn.util.errors import DataError, DataWarning
from helpers import changed, small_data
from quick_fit import find, fit

QUICK = {"preset": None, "overrides": ["train.epochs=2", "model.hidden_channels=4"], "splits": [0]}


def negated(data):
    return changed(data, x=-data.x)


@pytest.fixture
def loads(monkeypatch):
    """The names that are read, each a graph of its own."""
    names = []

    def load(name, protocol=None, root=None, directed=False):
        names.append(name)
        return changed(small_data(seed=len(names)), name=name, directed=directed)

    monkeypatch.setattr(spec, "load", load)
    return names


class TestReads:
    def test_the_same_once(self, loads):
        once = DataReader()
        first, again = (once.read("cora", DataSettings(), None, None) for _ in range(2))
        assert loads == ["cora"]
        assert first[0] is again[0]
        assert first[1] == again[1] == data_hash(first[0])

    @pytest.mark.parametrize(
        "other",
        [
            ("citeseer", DataSettings(), None, None),
            ("cora", DataSettings(protocol="public"), None, None),
            ("cora", DataSettings(), "elsewhere", None),
            ("cora", DataSettings(), None, negated),
        ],
        ids=["name", "protocol", "root", "transform"],
    )
    def test_what_is_not_the_same_anew(self, loads, other):
        once = DataReader()
        given, digest = once.read("cora", DataSettings(), None, None)
        changed_data, other_digest = once.read(*other)
        assert len(loads) == 2
        assert changed_data is not given
        assert other_digest != digest

    def test_with_directions_and_without(self, loads):
        once = DataReader()
        for undirected in (True, False):
            data, _ = once.read("chameleon-unfiltered", DataSettings(undirected=undirected), None, None)
            assert data.directed == (not undirected)

    def test_the_outcome_of_a_transform(self, loads):
        once, calls = DataReader(), []

        def transform(data):
            calls.append(data)
            return negated(data)

        first, again = (once.read("cora", DataSettings(), None, transform) for _ in range(2))
        assert len(calls) == 1
        assert first[0] is again[0]

    def test_a_graph_that_is_given_once(self):
        once, data = DataReader(), small_data()
        first = once.read(data, DataSettings(), None, None)
        assert once.read(data, DataSettings(), None, None) is first
        assert once.read(changed(data, x=-data.x), DataSettings(), None, None)[1] != first[1]

    def test_a_graph_as_it_is_by_each_reader(self):
        data = small_data()
        _, before = DataReader().read(data, DataSettings(), None, None)
        data.x = -data.x
        assert DataReader().read(data, DataSettings(), None, None)[1] != before


def test_fit_and_find_read_through_it(loads, tmp_path):
    once = DataReader()
    for model in ("gcn", "mlp"):
        run = fit("cora", model, runs=tmp_path, device="cpu", reader=once, **QUICK)
        assert find("cora", model, runs=tmp_path, reader=once, **QUICK).records == run.records
    assert loads == ["cora"]


@pytest.mark.parametrize("left", [["test_mask"], ["val_mask", "test_mask"]])
def test_masks_without_a_training_mask_are_not_replaced_in_silence(left):
    masks = ("train_mask", "val_mask", "test_mask")
    data = changed(small_data(), **{name: None for name in masks if name not in left})
    with pytest.raises(DataError) as caught:
        read_data(data, DataSettings(), None)
    assert str(caught.value) == (
        "this graph has no train_mask: give it train_mask, val_mask and test_mask, or a split protocol"
    )
    assert read_data(data, DataSettings(protocol="random-60-20-20"), None).train_mask.shape[1] == 10


def test_labels_that_leave_out_numbers_are_told_and_kept():
    data = small_data()
    with pytest.warns(DataWarning, match="so that there are 9 classes, 6 without a node"):
        read = read_data(changed(data, y=data.y * 4), DataSettings(), None)
    assert read.y.tolist() == (data.y * 4).tolist()
