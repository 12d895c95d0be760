"""`RunSpec`: where every setting comes from, and options of components as settings."""

import pytest

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.config import Settings
from gumbel_mpnn.config.presets import read_preset
from gumbel_mpnn.config.spaces import Space
from gumbel_mpnn.runs import RunSpec
from helpers import changed, small_data

DATA = small_data()
MIX = ("rewiring.regularizer=mix", "rewiring.regularizer_weight=1.0")


def rewired(*overrides, preset=None, **arguments):
    """The spec of a rewiring model with these settings of the table `rewiring`."""
    overrides = [f"rewiring.{override}" for override in overrides]
    return RunSpec.of(DATA, "gumbel-mpnn", preset=preset, overrides=overrides, **arguments)


def fingerprint(spec):
    return spec.settings.fingerprint("the same data")


@pytest.fixture
def file(tmp_path):
    """A function that writes a settings file."""

    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


class TestOrigins:
    def test_without_a_preset_everything_is_a_default(self):
        spec = RunSpec.of(DATA, "gumbel-mpnn", preset=None)
        assert set(spec.origins.values()) == {"default"}
        of_each_table = {
            f"{table}.{name}"
            for table, values in spec.settings.to_dict().items()
            if table != "dataset"
            for name in values
        }
        assert spec.origins.keys() == of_each_table - {"model.name"}

    def test_a_preset_says_which(self):
        spec, preset = RunSpec.of("cora", "gcn"), read_preset("tuned", "cora", "gcn")
        assert spec.preset == preset
        of_preset = {f"{table}.{name}" for table, values in preset.tables.items() for name in values}
        assert {name for name, origin in spec.origins.items() if origin == "preset tuned"} == of_preset
        assert {origin for name, origin in spec.origins.items() if name not in of_preset} == {"default"}

    def test_what_is_given_comes_before_the_preset(self):
        spec = RunSpec.of("cora", "gcn", settings={"train": {"lr": 0.5}}, overrides=["model.dropout=0.1"])
        assert spec.origins["train.lr"] == spec.origins["model.dropout"] == "given"
        assert spec.origins["train.epochs"] == "preset tuned"
        assert (spec.settings.train.lr, spec.settings.options["dropout"]) == (0.5, 0.1)

    def test_a_file_is_named(self, file):
        path = file('source = "this test"\n[train]\nlr = 0.5\nepochs = 3\n')
        for given in (path, str(path)):
            spec = RunSpec.of(DATA, "gcn", preset=given, overrides=["train.epochs=7"])
            assert spec.origins["train.lr"] == str(path)
            assert spec.origins["train.epochs"] == "given"
            assert spec.origins["train.patience"] == "default"
            assert spec.preset is None

    def test_an_own_graph_has_no_preset_and_a_borrowed_one_is_named(self):
        assert RunSpec.of(DATA, "gcn").preset is None
        assert set(RunSpec.of(DATA, "gcn").origins.values()) == {"default"}
        assert RunSpec.of("roman-empire", "drop-edge").preset.model == "gcn"

    def test_a_temperature_that_is_given_is_given_for_the_end_too(self):
        spec = rewired("tau=0.1")
        assert spec.origins["rewiring.tau"] == spec.origins["rewiring.tau_end"] == "given"

    def test_an_option_with_a_setting_of_its_own_has_the_origin_of_that_setting(self):
        spec = rewired("candidates.per_node=7")
        assert spec.origins["rewiring.per_node"] == "given"
        assert "rewiring.candidates.per_node" not in spec.origins


class TestReplicas:
    def test_splits_and_seeds_are_read_once(self):
        spec = RunSpec.of(DATA, "gcn", splits=iter([1, 0, 1]), seeds=iter([4, 2]))
        assert (spec.splits, spec.seeds) == ((1, 0, 1), (4, 2))
        expected = [(1, 4), (1, 2), (0, 4), (0, 2)]
        for _ in range(2):
            assert [(replica.split, replica.seed) for replica in spec.read().replicas] == expected

    def test_a_number_of_seeds(self):
        assert RunSpec.of(DATA, "gcn", seeds=3).seeds == (0, 1, 2)


class TestData:
    @pytest.mark.parametrize(
        ("overrides", "undirected"),
        [((), True), (("data.undirected=true",), True), (("data.undirected=false",), False)],
    )
    def test_a_function_is_asked_with_whether_edges_go_both_ways(self, overrides, undirected):
        asked = []

        def read(both_ways):
            asked.append(both_ways)
            return changed(DATA, name="birds")

        spec = RunSpec.of(read, "gcn", overrides=overrides)
        assert asked == [undirected]
        assert (spec.settings.dataset, spec.dataset.name) == ("birds", "birds")

    def test_a_function_is_asked_with_what_a_file_says(self, file):
        asked = []
        path = file("[data]\nundirected = false\n")
        RunSpec.of(lambda both_ways: asked.append(both_ways) or DATA, "gcn", preset=path)
        RunSpec.of(
            lambda both_ways: asked.append(both_ways) or DATA, "gcn", preset=path, overrides=["data.undirected=true"]
        )
        assert asked == [False, True]

    def test_a_function_may_name_a_data_set_whose_preset_is_then_taken(self):
        assert RunSpec.of(lambda _: "Cora", "gcn").settings == RunSpec.of("cora", "gcn").settings

    @pytest.mark.parametrize("dataset", [None, 3, lambda _: None], ids=["None", "number", "function"])
    def test_what_is_no_data_set_is_told(self, dataset):
        with pytest.raises(UserError, match="dataset must be a name or a Data, not"):
            RunSpec.of(dataset, "gcn")

    @pytest.mark.parametrize("model", [None, 3, object])
    def test_what_is_no_model_is_told(self, model):
        with pytest.raises(UserError, match="model must be a name, such as 'gcn', not"):
            RunSpec.of(DATA, model)


class TestLaidOver:
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

    def test_nothing_laid_over_is_the_same(self):
        spec = RunSpec.of("cora", "gumbel-mpnn", overrides=["rewiring.tau=0.1"])
        assert spec.laid_over({}) == spec

    def test_a_temperature_is_constant_without_an_end_of_its_own(self):
        spec = rewired("tau=0.1").laid_over({"rewiring": {"tau": 0.5}})
        assert (spec.settings.rewiring.tau, spec.settings.rewiring.tau_end) == (0.5, 0.5)
        spec = rewired("tau=0.1").laid_over({"rewiring": {"tau_end": 0.05}})
        assert (spec.settings.rewiring.tau, spec.settings.rewiring.tau_end) == (0.1, 0.05)

    def test_another_component_has_none_of_the_options_of_the_first(self):
        spec = rewired("regularizer=mix", "regularizer_weight=1.0", "regularizer.margin=0.5")
        over = spec.laid_over({"rewiring": {"regularizer": "degree"}})
        assert over.settings.rewiring.options == {}
        assert spec.laid_over({"rewiring": {"regularizer": "mix"}}).settings == spec.settings


class TestOptionsOfComponents:
    def test_one_of_each_component(self):
        spec = rewired(
            "candidates=ricci",
            "candidates.per_edge=3",
            "regularizer=degree",
            "regularizer_weight=2",
            "regularizer.two_sided=true",
            "regularizer.tolerance=1",
        )
        rewiring = spec.settings.rewiring
        assert rewiring.options == {
            "candidates.per_edge": 3,
            "regularizer.two_sided": True,
            "regularizer.tolerance": 1.0,
        }
        assert type(rewiring.options["regularizer.tolerance"]) is float
        assert rewiring.own_options("regularizer") == {"two_sided": True, "tolerance": 1.0}
        assert rewiring.options_of("regularizer", ["weight", "two_sided"]) == {"weight": 2.0, "two_sided": True}
        assert spec.origins["rewiring.candidates.per_edge"] == "given"

    @pytest.mark.parametrize(
        ("option", "setting"),
        [
            ("candidates.per_node=7", "per_node=7"),
            ("candidates.similarity=dot", "similarity=dot"),
            ("scorer.channels=16", "channels=16"),
            ("regularizer.weight=0.5", "regularizer_weight=0.5"),
            ("regularizer.target=9", "target_degree=9"),
        ],
    )
    def test_one_with_a_setting_of_its_own_is_that_setting(self, option, setting):
        base = ("regularizer=degree", "regularizer_weight=1.0")
        by_option, by_setting = (rewired(*base, given) for given in (option, setting))
        assert by_option.settings == by_setting.settings != rewired(*base).settings
        assert fingerprint(by_option) == fingerprint(by_setting) != fingerprint(rewired(*base))
        assert by_option.origins == by_setting.origins

    @pytest.mark.parametrize("last", ["per_node=7", "candidates.per_node=7"])
    def test_the_last_layer_counts_by_whichever_name(self, last, file):
        path = file("[rewiring]\nper_node = 3\n")
        for name in ("per_node", "candidates.per_node"):
            spec = rewired(last, preset=path, settings={"rewiring": {name: 4}})
            assert spec.settings.rewiring.per_node == 7

    def test_one_that_has_its_default_value_leaves_the_fingerprint_as_it_is(self):
        plain = RunSpec.of(DATA, "gumbel-mpnn", preset=None, overrides=MIX)
        for value in ("1.0", "1"):
            spec = RunSpec.of(
                DATA, "gumbel-mpnn", preset=None, overrides=[*MIX, f"rewiring.regularizer.margin={value}"]
            )
            assert spec.settings == plain.settings
            assert fingerprint(spec) == fingerprint(plain)
        other = RunSpec.of(DATA, "gumbel-mpnn", preset=None, overrides=[*MIX, "rewiring.regularizer.margin=0.5"])
        assert fingerprint(other) != fingerprint(plain)

    def test_they_are_written_and_read_back(self):
        settings = rewired("candidates=ricci", "candidates.per_edge=3").settings
        written = settings.to_dict()
        assert written["rewiring"]["candidates.per_edge"] == 3
        assert "options" not in written["rewiring"]
        assert Settings.from_dict(written) == settings

    @pytest.mark.parametrize(
        ("overrides", "sentence"),
        [
            (
                ("regularizer=mix", "regularizer_weight=1", "regularizer.magrin=0.5"),
                "^regularizer 'mix' has no option 'magrin': did you mean 'margin'",
            ),
            (
                ("regularizer=mix", "regularizer_weight=1", "regularizer.margin=wide"),
                "^option 'margin' of regularizer 'mix' must be of type float, like 1.0, but is 'wide'",
            ),
            (("candidates=ricci", "candidates.per_edge=1.5"), "option 'per_edge' of candidate strategy 'ricci'"),
            (("candidates.per_edge=3",), "^candidate strategy 'local' has no option 'per_edge'"),
            (("scorer.depth=3",), "^scorer 'class-space' has no option 'depth'"),
            (("regularizer.margin=0.5",), r"^rewiring\.regularizer is 'none', which has no option 'margin'"),
            (("candidates=none", "candidates.seed=1"), r"^rewiring\.candidates is 'none', which has no option 'seed'"),
            (("sampler.depth=3",), r"^there is no setting 'rewiring\.sampler\.depth'"),
            (("candidates.per_node=-1",), r"^setting 'rewiring\.per_node' must be 0 or more"),
        ],
    )
    def test_what_is_unknown_or_of_a_wrong_type_is_refused(self, overrides, sentence):
        with pytest.raises(UserError, match=sentence):
            rewired(*overrides)

    def test_they_go_where_a_later_layer_names_another_component(self, file):
        path = file(
            '[rewiring]\ncandidates = "ricci"\nregularizer = "mix"\nregularizer_weight = 1.0\n'
            "[rewiring.options]\ncandidates.per_edge = 3\nregularizer.margin = 0.5\n"
        )
        spec = rewired("regularizer=degree", preset=path)
        assert spec.settings.rewiring.options == {"candidates.per_edge": 3}
        spec = rewired("regularizer=degree", "regularizer.tolerance=1.0", preset=path)
        assert spec.settings.rewiring.options == {"candidates.per_edge": 3, "regularizer.tolerance": 1.0}
        spec = rewired("regularizer=mix", preset=path)
        assert spec.settings.rewiring.options == {"candidates.per_edge": 3, "regularizer.margin": 0.5}

    def test_a_table_of_them_in_a_file(self, file):
        in_table = file(
            '[rewiring]\nregularizer = "mix"\nregularizer_weight = 1.0\n'
            "[rewiring.options]\nregularizer.margin = 0.5\ncandidates.per_node = 7\n"
        )
        spec = rewired(preset=in_table)
        given = RunSpec.of(
            DATA,
            "gumbel-mpnn",
            preset=None,
            overrides=[*MIX, "rewiring.regularizer.margin=0.5", "rewiring.per_node=7"],
        )
        assert spec.settings == given.settings
        assert spec.origins["rewiring.regularizer.margin"] == spec.origins["rewiring.per_node"] == str(in_table)
        over = rewired("regularizer.margin=0.25", preset=in_table)
        assert over.settings.rewiring.options == {"regularizer.margin": 0.25}
        assert over.origins["rewiring.regularizer.margin"] == "given"

    def test_an_option_of_no_component_in_a_file_is_told(self, file):
        with pytest.raises(UserError, match=r"options of 'margin' must be a table, but are 0\.5"):
            rewired(preset=file("[rewiring.options]\nmargin = 0.5\n"))

    def test_a_search_chooses_among_their_values(self):
        space = {"rewiring": {"options": {"regularizer": {"margin": [0.5, 2.0]}, "candidates": {"per_node": [3, 4]}}}}
        spec = RunSpec.of(DATA, "gumbel-mpnn", preset=None, overrides=MIX)
        drawn = {
            (rewiring.options["regularizer.margin"], rewiring.per_node)
            for chosen in Space.of(space).draws(0)
            for rewiring in [spec.laid_over(Space.of(space).tables(chosen)).settings.rewiring]
        }
        assert drawn == {(margin, count) for margin in (0.5, 2.0) for count in (3, 4)}
