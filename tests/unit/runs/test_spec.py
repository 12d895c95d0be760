"""`RunSpec`: settings laid over each other, and where each comes from; data that are read once for several runs."""

import pytest

from gumbel_mpnn.nn import backbones
from gumbel_mpnn.runs import spec as module
from gumbel_mpnn.runs.spec import DataReader, RunSpec, asks_for_undirected, find_preset, read_data
from gumbel_mpnn.settings import DataSettings, Settings, TrainSettings
from gumbel_mpnn.settings.presets import read_preset
from gumbel_mpnn.training import data_hash
from gumbel_mpnn.util.errors import DataError, DataWarning, UserError
from helpers import changed, small_data
from quick_fit import find, fit, quick, resolved

DATA = small_data()


def rewired(*overrides, preset=None, **arguments):
    """The spec of a rewiring model with these settings of the table `rewiring`."""
    overrides = [f"rewiring.{override}" for override in overrides]
    return RunSpec.of(DATA, "gumbel-mpnn", preset=preset, overrides=overrides, **arguments)


@pytest.fixture
def file(tmp_path):
    """A function that writes a settings file."""

    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


class TestLayers:
    def test_later_ones_win(self, file):
        preset = file(
            'source = "this test"\n[model]\nhidden_channels = 10\nnorm = "layer"\n[train]\nlr = 0.1\nepochs = 9\n'
        )
        settings = {"model": {"dropout": 0.2, "num_layers": 4}, "train": {"epochs": 8}}
        overrides = ["train.epochs=7", "model.num_layers=5"]
        for given in (preset, str(preset)):
            spec = RunSpec.of(DATA, "gcn", preset=given, settings=settings, overrides=overrides)
            options = {"hidden_channels": 10, "norm": "layer", "dropout": 0.2, "num_layers": 5}
            assert spec.settings.options == {**backbones.defaults("gcn"), **options}
            assert spec.settings.train == TrainSettings(lr=0.1, epochs=7)
            origins = {name: spec.origins[f"train.{name}"] for name in ("lr", "epochs", "patience")}
            assert origins == {"lr": str(preset), "epochs": "given", "patience": "default"}

    def test_without_a_preset_everything_is_a_default(self):
        spec = RunSpec.of(DATA, "gumbel-mpnn", preset=None)
        assert set(spec.origins.values()) == {"default"}
        tables = {table: values for table, values in spec.settings.to_dict().items() if table != "dataset"}
        assert spec.origins.keys() == {f"{table}.{name}" for table in tables for name in tables[table]} - {"model.name"}
        assert (spec.settings.dataset, spec.settings.model) == ("own", "gumbel-mpnn")

    @pytest.mark.parametrize("family", ["tuned", "paper"])
    def test_a_data_set_takes_its_preset(self, family):
        spec, preset = RunSpec.of("Cora", "GCN", preset=family), read_preset(family, "cora", "gcn")
        assert spec.preset == preset
        assert spec.settings.options == {**backbones.defaults("gcn"), **preset.tables["model"]}
        assert spec.settings.train == TrainSettings(**preset.tables["train"])
        of_preset = {f"{table}.{name}" for table, values in preset.tables.items() for name in values}
        assert {name for name, origin in spec.origins.items() if origin == f"preset {family}"} == of_preset

    def test_a_graph_takes_the_preset_of_a_data_set_if_it_has_its_name(self):
        assert RunSpec.of(DATA, "gcn").preset is None
        assert resolved(changed(DATA, name="cora"), "gcn") == resolved("cora", "gcn")

    def test_fit_takes_the_same_layers(self, file):
        preset = file('[model]\nnorm = "layer"\n')
        run = quick(preset=preset, settings={"model": {"hidden_channels": 4}}, overrides=["train.epochs=2"], splits=[0])
        assert (run.settings.options["hidden_channels"], run.settings.options["norm"]) == (4, "layer")
        assert run.records[0].settings == run.settings.to_dict()

    def test_a_file_may_have_entries_of_data_sets_and_models_as_a_family_has(self, file):
        path = file(
            "train.epochs = 3\n[cora]\ntrain.lr = 0.5\n[cora.gcn]\nmodel.dropout = 0.25\n[gat]\nmodel.heads = 2\n"
        )
        gcn, gat, own = (
            resolved("cora", "gcn", preset=path),
            resolved("cora", "gat", preset=path),
            resolved(DATA, "gcn", preset=path),
        )
        assert (gcn.train.epochs, gcn.train.lr, gcn.options["dropout"]) == (3, 0.5, 0.25)
        assert (gat.train.lr, gat.options["heads"]) == (0.5, 2)
        assert own.train == TrainSettings(epochs=3)

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            ("[model\n", r"cannot read the settings file .*mine\.toml"),
            ("[train]\nepoch = 3\n", r"there is no setting 'train.epoch': did you mean 'epochs'"),
            ("[trian]\nepochs = 3\n", r"there is no setting 'trian' in .*mine\.toml: did you mean 'train'"),
            ("epochs = 3\n", r"there is no setting 'epochs' in .*mine\.toml"),
            ("[rewiring]\ntau = 0.5\n", "model 'gcn' does not rewire the graph"),
        ],
    )
    def test_a_mistake_in_a_file_is_told(self, file, content, sentence):
        with pytest.raises(UserError, match=sentence):
            RunSpec.of(DATA, "gcn", preset=file(content))

    @pytest.mark.parametrize(
        ("in_file", "changes", "expected"),
        [
            ("tau_end = 0.2", (), (1.0, 0.2)),
            ("tau_end = 0.2", ("tau=0.1",), (0.1, 0.1)),
            ("tau = 0.1\ntau_end = 0.1", ("tau=0.5",), (0.5, 0.5)),
            ("tau = 2.0", (), (2.0, 2.0)),
            ("tau = 2.0", ("tau_end=0.5",), (2.0, 0.5)),
            ("tau = 2.0", ("tau=1.0", "tau_end=0.5"), (1.0, 0.5)),
        ],
    )
    def test_a_temperature_is_constant_without_an_end_of_its_own(self, file, in_file, changes, expected):
        spec = rewired(*changes, preset=file(f"[rewiring]\n{in_file}\n"))
        assert (spec.settings.rewiring.tau, spec.settings.rewiring.tau_end) == expected
        assert spec.origins["rewiring.tau_end"] != "default"


def test_splits_and_seeds_are_read_once():
    spec = RunSpec.of(DATA, "gcn", splits=iter([1, 0, 1]), seeds=iter([4, 2]))
    assert (spec.splits, spec.seeds) == ((1, 0, 1), (4, 2))
    for _ in range(2):
        found = [(replica.split, replica.seed) for replica in spec.read().replicas]
        assert found == [(1, 4), (1, 2), (0, 4), (0, 2)]


@pytest.mark.parametrize(
    ("overrides", "alone", "over_a_file"),
    [((), True, False), (("data.undirected=true",), True, True), (("data.undirected=false",), False, False)],
)
def test_who_reads_edges_before_is_told_whether_they_go_both_ways(overrides, alone, over_a_file, file):
    assert asks_for_undirected(None, overrides) is alone
    assert asks_for_undirected(file("[data]\nundirected = false\n"), overrides) is over_a_file


class TestCopies:
    def test_only_what_is_laid_over_changes(self, file):
        path = file("[train]\nlr = 0.5\nepochs = 3\n")
        arguments = {"splits": [1], "seeds": [4], "transform": lambda data: data, "root": "somewhere"}
        spec = RunSpec.of(DATA, "gcn", preset=path, overrides=["train.patience=2", "model.dropout=0.1"], **arguments)
        over = spec.laid_over({"train": {"epochs": 9, "patience": 5}})
        assert (over.settings.train.epochs, over.settings.train.patience, over.settings.train.lr) == (9, 5, 0.5)
        assert over.settings.options == spec.settings.options
        for name in ("dataset", "splits", "seeds", "transform", "root", "asked_preset"):
            assert getattr(over, name) is getattr(spec, name) or getattr(over, name) == getattr(spec, name)
        assert (over.origins["train.epochs"], over.origins["train.lr"]) == ("given", str(path))
        assert spec.settings.train.epochs == 3
        assert spec.laid_over({}) == spec

    def test_another_component_has_none_of_the_options_of_the_first(self):
        spec = rewired("regularizer=mix", "regularizer.margin=0.5")
        over = spec.laid_over({"rewiring": {"regularizer": "degree"}})
        assert over.settings.rewiring.options_of("regularizer")["target"] == 5.0
        assert "regularizer.margin" not in over.settings.rewiring.options
        assert spec.laid_over({"rewiring": {"regularizer": "mix"}}).settings == spec.settings

    def test_an_option_of_another_backbone_is_refused(self):
        with pytest.raises(UserError, match="model 'gumbel-mpnn' with backbone 'gcn' has no option 'heads'"):
            RunSpec.of(DATA, "gumbel-mpnn", overrides=["model.heads=2"])
        spec = RunSpec.of(DATA, "gumbel-mpnn", overrides=["model.heads=2", "model.backbone=GAT"])
        assert spec.settings.options["heads"] == 2
        assert "teleport" not in spec.settings.options

    def test_another_model_has_the_settings_that_it_knows(self, file):
        path = file(
            "model = {heads = 2, dropout = 0.1}\ntrain.lr = 0.5\nrewiring.tau = 0.5\n[gcn]\nmodel.num_layers = 3\n"
        )
        spec = RunSpec.of(DATA, "gumbel-mpnn", preset=path, overrides=["model.backbone=gat", "train.epochs=3"])
        other = spec.with_model("gcn").settings
        assert (other.model, other.rewiring) == ("gcn", None)
        assert (other.options["num_layers"], "heads" in other.options) == (3, False)
        assert (other.train.lr, other.train.epochs) == (0.5, 3)


class TestOptionsOfComponents:
    def test_those_that_are_given_and_the_defaults_of_the_others(self):
        given = ("candidates=ricci", "candidates.per_edge=3", "regularizer=degree", "regularizer.tolerance=1")
        spec = rewired(*given)
        assert spec.settings.rewiring.options == {
            "candidates.pairs": 0,
            "candidates.per_edge": 3,
            "candidates.seed": 0,
            "regularizer.weight": 1.0,
            "regularizer.target": 5.0,
            "regularizer.tolerance": 1.0,
            "scorer.pair_loss": 0.0,
        }
        assert type(spec.settings.rewiring.options["regularizer.tolerance"]) is float
        assert spec.origins["rewiring.candidates.per_edge"] == "given"
        assert spec.origins["rewiring.candidates.pairs"] == "default"
        assert Settings.from_dict(spec.settings.to_dict()) == spec.settings

    def test_a_default_that_is_given_changes_nothing(self):
        plain, given = rewired("regularizer=mix"), rewired("regularizer=mix", "regularizer.margin=1")
        other = rewired("regularizer=mix", "regularizer.margin=0.5")
        assert plain.settings == given.settings
        assert (
            plain.settings.fingerprint("data")
            == given.settings.fingerprint("data")
            != other.settings.fingerprint("data")
        )

    @pytest.mark.parametrize(
        ("overrides", "sentence"),
        [
            (
                ("regularizer=mix", "regularizer.magrin=0.5"),
                "^regularizer 'mix' has no option 'magrin': did you mean 'margin'",
            ),
            (
                ("regularizer=mix", "regularizer.margin=wide"),
                "^option 'margin' of regularizer 'mix' must be of type float, like 1.0, but is 'wide'",
            ),
            (("candidates=ricci", "candidates.per_edge=1.5"), "option 'per_edge' of candidate strategy 'ricci'"),
            (("candidates.per_edge=3",), "^candidate strategy 'local' has no option 'per_edge'"),
            (("scorer.depth=3",), "^scorer 'class-space' has no option 'depth'"),
            (("regularizer.margin=0.5",), r"^rewiring\.regularizer is 'none', which has no option 'margin'"),
            (("candidates=none", "candidates.seed=1"), r"^rewiring\.candidates is 'none', which has no option 'seed'"),
            (("sampler.depth=3",), r"^there is no setting 'rewiring\.sampler\.depth'"),
        ],
    )
    def test_what_is_unknown_or_of_a_wrong_type_is_refused(self, overrides, sentence):
        with pytest.raises(UserError, match=sentence):
            rewired(*overrides)

    def test_a_file_may_write_them_in_a_table(self, file):
        path = file('[rewiring]\nregularizer = {name = "mix", margin = 0.5}\ncandidates.per_node = 7\n')
        spec = rewired("regularizer.margin=0.25", preset=path)
        given = rewired("regularizer=mix", "regularizer.margin=0.25", "candidates.per_node=7")
        assert spec.settings == given.settings
        assert spec.origins["rewiring.candidates.per_node"] == str(path)
        assert spec.origins["rewiring.regularizer.margin"] == "given"
        other = rewired("regularizer=degree", preset=path).settings.rewiring
        assert (other.options_of("regularizer")["target"], other.options_of("candidates")["per_node"]) == (5.0, 7)


@pytest.mark.parametrize(
    ("wanted", "owner"),
    [
        (("tuned", "cora", "gcn"), "gcn"),
        (("tuned", "cora", "DropEdge"), "drop-edge"),
        (("tuned", "roman-empire", "DropEdge"), "gcn"),
        (("tuned", "roman-empire", "sdrf", "GraphSAGE"), "sage"),
        (("few-labels", "cora", "drop-edge", "gat"), None),
        (("robust", "cora", "gcn"), None),
        (("robust", "cora", "frozen"), "gumbel-mpnn"),
        (("tuned", "roman-empire", "frozen"), None),
    ],
    ids=str,
)
def test_whose_preset_a_model_takes(wanted, owner):
    found = find_preset(*wanted)
    assert (found and found.model) == owner
    if found is not None:
        assert found == read_preset(wanted[0], wanted[1], owner)


def test_what_lies_over_a_backbone_lies_over_the_one_that_is_asked_for():
    own = ("iterations", "tau", "removal_bound")
    over_gcn, over_sage = (find_preset("tuned", "cora", "sdrf", name).tables for name in ("gcn", "sage"))
    gcn, sage = (read_preset("tuned", "cora", name).tables for name in ("gcn", "sage"))
    assert over_gcn["train"] == gcn["train"] != over_sage["train"] == sage["train"]
    assert {name: over_sage["model"].pop(name) for name in own} == {name: over_gcn["model"].pop(name) for name in own}
    assert (over_gcn["model"], over_sage["model"]) == (gcn["model"], sage["model"])


def negated(data):
    return changed(data, x=-data.x)


@pytest.fixture
def loads(monkeypatch):
    """The names that are read, each a graph of its own."""
    names = []

    def load(name, protocol=None, root=None, directed=False):
        names.append(name)
        return changed(small_data(seed=len(names)), name=name, directed=directed)

    monkeypatch.setattr(module, "load", load)
    return names


class TestReader:
    def read(self, *readers, dataset="cora", settings=None, root=None, transform=None):
        """What each of these readers reads, with its hash."""
        return [reader.read(dataset, settings or DataSettings(), root, transform) for reader in readers]

    def test_the_same_is_read_once(self, loads):
        first, again = self.read(*[DataReader()] * 2)
        assert loads == ["cora"]
        assert first[0] is again[0]
        assert first[1] == again[1] == data_hash(first[0])

    @pytest.mark.parametrize(
        "other",
        [
            {"dataset": "citeseer"},
            {"settings": DataSettings(protocol="public")},
            {"root": "elsewhere"},
            {"transform": negated},
        ],
        ids=lambda other: next(iter(other)),
    )
    def test_what_is_not_the_same_is_read_anew(self, loads, other):
        reader = DataReader()
        (given,), (another,) = self.read(reader), self.read(reader, **other)
        assert len(loads) == 2
        assert another[0] is not given[0]
        assert another[1] != given[1]

    def test_with_directions_and_without(self, loads):
        for undirected in (True, False):
            settings = DataSettings(undirected=undirected)
            ((data, _),) = self.read(DataReader(), dataset="chameleon-unfiltered", settings=settings)
            assert data.directed == (not undirected)

    def test_a_transform_is_applied_once(self, loads):
        calls = []
        first, again = self.read(*[DataReader()] * 2, transform=lambda data: calls.append(data) or negated(data))
        assert len(calls) == 1
        assert first[0] is again[0]

    def test_a_graph_that_is_given_is_hashed_once_by_a_reader_and_anew_by_another(self):
        reader, data = DataReader(), small_data()
        first, again = self.read(reader, reader, dataset=data)
        assert first is again
        assert self.read(reader, dataset=negated(data))[0][1] != first[1]
        data.x = -data.x
        assert self.read(DataReader(), dataset=data)[0][1] != first[1]


def test_fit_and_find_read_through_it(loads, tmp_path):
    how = {"preset": None, "overrides": ["train.epochs=2", "model.hidden_channels=4"], "splits": [0]}
    how |= {"runs": tmp_path, "reader": DataReader()}
    for model in ("gcn", "mlp"):
        assert fit("cora", model, device="cpu", **how).records == find("cora", model, **how).records
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
