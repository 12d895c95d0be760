"""Whatever a person gets wrong: one sentence on standard error, exit code 2, nothing written."""

import subprocess
import sys

import pytest
from quick_options import GCN


def tree(folder):
    return sorted(path for path in folder.rglob("*"))


def check_one_sentence(code, stdout, stderr, message):
    assert code == 2
    assert stdout == ""
    assert stderr.startswith("error: ")
    assert stderr.endswith("\n")
    assert stderr.count("\n") == 1, stderr
    assert message in stderr


@pytest.fixture
def refused(command, tmp_path):
    """Runs the command and checks that it refuses with this message and leaves everything as it was."""

    def run(*arguments, message):
        before = tree(tmp_path)
        result = command(*arguments)
        check_one_sentence(result.exit_code, result.stdout, result.stderr, message)
        assert tree(tmp_path) == before

    return run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train corra", "there is no data set called 'corra': did you mean 'cora'"),
        ("train cora --model gnc", "there is no model called 'gnc': did you mean 'gcn'?"),
        ("train", "give the name of a data set, or own data as --nodes and --edges, or as --graph"),
        ("train cora --graph g.npz", "give the name of a data set, or own data"),
        ("train cora --nodes n.csv --edges e.csv", "give the name of a data set, or own data"),
        ("train --edges e.csv", "give the name of a data set, or own data"),
        ("train --graph g.npz --nodes n.csv --edges e.csv", "give the name of a data set, or own data"),
        ("train --nodes n.csv --edges e.csv", "own data needs --label, the name of the label column"),
        ("train --graph g.graphml", "there is no file g.graphml"),
        ("train --nodes n.csv --edges e.csv --label kind", "there is no file n.csv"),
        ("train --graph g.npz", "there is no file g.npz"),
        (
            "train --graph nodes.csv",
            "--graph takes .npz and .graphml files, not nodes.csv: give CSV files as --nodes and",
        ),
        ("measure --graph g.tsv.gz --label kind", "--graph takes .npz and .graphml files, not g.tsv.gz: "),
        (
            "train --graph graph",
            "--graph takes .npz and .graphml files, not graph: give CSV files as --nodes and --edges",
        ),
        ("train --graph g.NPZ --label kind", "an npz file has its labels in the array 'node_labels'"),
        ("train --graph g.npz --label kind", "an npz file has its labels in the array 'node_labels'"),
        ("measure --graph g.npz --features a,b", "apply to CSV and GraphML files: leave them out"),
        ("train --graph g.graphml --label kind", "there is no file g.graphml"),
        ("data show corra", "there is no data set called 'corra': did you mean 'cora'"),
        (
            "presets show corra gcn",
            "there is no data set with a preset 'tuned' for 'gcn' called 'corra': did you mean 'cora'",
        ),
        (
            "presets show corra sdrf",
            "there is no data set with a preset 'tuned' for 'sdrf' called 'corra': did you mean 'cora'",
        ),
        ("presets show cora gnc", "there is no model called 'gnc': did you mean 'gcn'?"),
        ("presets show cora gcn --preset tund", "there is no family of presets called 'tund': did you mean 'tuned'?"),
        ("presets show texas gcn", "there is no data set with a preset 'tuned' for 'gcn' called 'texas'"),
        (
            "presets show",
            "name a model: `presets show cora gcn` shows a preset, `presets show --model gcn` the",
        ),
        ("presets show cora gcn --model gat", "the models 'gcn' and 'gat' are named: name one"),
        ("presets --format json show cora gcn", "write --format after 'show'"),
        ("data --data-root elsewhere show cora", "write --data-root after 'show'"),
        ("train cora --splits 0-99999999999", "the range '0-99999999999' has more than 10000 numbers"),
        ("train cora --label x --features y", "--label and --features apply to own data only, not to a named data set"),
        ("reproduce backbons", "there is no table called 'backbons': did you mean 'backbones'?"),
        (
            "reproduce backbones --only corra",
            "there is no data set, model, preset or setting in this table called 'corra': did you mean 'cora'",
        ),
        ("reproduce backbones --only cora,gnc", "no data set, model, preset or setting in this table called 'gnc'"),
        ("reproduce backbones --splits a", "'a' is not a valid range"),
    ],
)
def test_without_data(refused, arguments, message):
    refused(*arguments.split(), message=message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("trian", "no such command 'trian': did you mean 'train'? (see "),
        ("train --modle gcn", "no such option: --modle (Possible options: --model"),
        ("train cora --model", "--model' requires an argument"),
        ("train cora --seeds many", "invalid value for '--seeds': "),
        ("train cora --seeds 0", "invalid value for '--seeds': "),
        ("train cora pubmed", "got unexpected extra argument"),
        ("train cora --format jsn", "invalid value for '--format': "),
        ("data show", "missing argument 'name' (see "),
        ("data sohw cora", "no such command 'sohw'"),
        ("rewire runs", "missing option '--out' (see "),
        ("--versoin", "no such option: --versoin "),
    ],
)
def test_wrong_usage(refused, arguments, message):
    refused(*arguments.split(), message=message)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--set model.droput=0.1", "model 'gcn' has no option 'droput': did you mean 'dropout'"),
        ("--set train.epoch=1", "there is no setting 'train.epoch': did you mean 'epochs'?"),
        ("--set modell.dropout=1", "there is no setting 'modell': did you mean 'model'?"),
        ("--set dropout=1", "cannot read the setting 'dropout=1': write it as table.name=value"),
        ("--set model.dropout=much", "option 'dropout' of model 'gcn' must be of type float"),
        ("--set model.dropout=1.5", "dropout must lie between 0 and 1, but is 1.5"),
        ("--set train.lr=0", "setting 'train.lr' must be above 0, but is 0.0"),
        ("--set data.protocol=geom-gcn", "geom-gcn"),
        ("--splits a-b", "'a-b' is not a valid range: write it as 0-9 or 0,2,5"),
        ("--splits 3-1", "the range '3-1' is backwards"),
        ("--splits 0-2", "there is no split 2: this data set has splits 0 to 1"),
        ("--preset tund", "there is no family of presets called 'tund': did you mean 'tuned'?"),
        ("--preset mine.toml", "there is no settings file mine.toml"),
        ("--experiment ../out", "experiment must be the name of a single folder, but is '../out'"),
        ("--device gpu", "there is no device 'gpu': use 'auto', 'cpu' or 'cuda'"),
    ],
)
def test_with_data(refused, arguments, message):
    refused("train", "tiny", "--model", "gcn", *arguments.split(), message=message)


def test_a_missing_label_column(refused, own):
    files = ("--nodes", own / "nodes.csv", "--edges", own / "edges.csv")
    refused("train", *files, "--label", "knd", message="nodes.csv has no column 'knd': did you mean 'kind'?")


def test_a_missing_feature_column(refused, csv):
    refused("train", *csv, "--features", "height,wait", message="nodes.csv has no column 'wait'")


def test_labels_that_are_ids(refused, csv):
    refused("train", *csv[:4], "--label", "id", message="there are as many classes as labelled nodes, 20, so no class")


def test_labels_that_are_all_the_same(refused, own, csv):
    text = (own / "nodes.csv").read_text()
    (own / "nodes.csv").write_text(text.replace("dog", "cat"))
    refused("train", *csv, message="all labelled nodes are of one class: classification needs two or more")


def test_a_missing_label_attribute(refused, own):
    refused(
        "train", "--graph", own / "graph.graphml", "--label", "knd", message="has the attribute 'knd': did you mean"
    )


def test_a_graph_file_that_does_not_say_its_label(refused, own):
    message = "own data needs --label, the name of the label attribute"
    refused("train", "--graph", own / "graph.graphml", message=message)


def test_an_edge_to_an_unknown_node(refused, own, csv):
    with (own / "edges.csv").open("a") as file:
        file.write("n3,n99\n")
    refused("train", *csv, message="line 42 of ")
    refused("train", *csv, message="names the node 'n99', which ")


def test_files_that_are_not_what_they_are_called(refused, own):
    for name, label in (("graph.npz", ()), ("graph.graphml", ("--label", "kind"))):
        (own / name).write_text("no such thing")
        refused("train", "--graph", own / name, *label, message=f"{name} is not a ")


@pytest.mark.parametrize("verb", [("train",), ("data", "show")], ids=str)
def test_files_that_are_nowhere_and_no_network(refused, tmp_path, verb):
    refused(*verb, "minesweeper", message="data set 'minesweeper' lacks heterophilous/minesweeper.npz, found under")
    refused(*verb, "minesweeper", message=f"put it in {tmp_path / 'data'} under that name")


@pytest.mark.usefixtures("tiny")
def test_an_altered_data_file(refused, tmp_path):
    path = tmp_path / "data/tiny/tiny.npz"
    path.write_bytes(path.read_bytes()[:-100])
    refused("train", "tiny", message=str(path))


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("place", ["runs", "runs/train", "runs/train/tiny"])
def test_a_file_where_the_runs_should_go(command, here, place):
    (here / place).parent.mkdir(parents=True, exist_ok=True)
    (here / place).write_text("a diary")
    result = command("train", "tiny", *GCN)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert place in result.stderr.splitlines()[-1]
    assert (here / place).read_text() == "a diary"


@pytest.mark.usefixtures("tiny")
def test_predictions_that_cannot_be_written(command, here):
    (here / "folder").mkdir()
    result = command("train", "tiny", *GCN, "--predictions", "folder")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert "folder" in result.stderr.splitlines()[-1]
    assert sorted(path.name for path in here.iterdir()) == ["folder"]


@pytest.mark.usefixtures("tiny")
def test_a_damaged_record(command, here):
    command("train", "tiny", *GCN)
    record = next(here.rglob("record.json"))
    record.write_text("{")
    result = command("train", "tiny", *GCN)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("error: cannot read the run record runs/")
    result = command("runs", "--format", "csv")
    assert result.exit_code == 0
    assert [line.split(",")[3] for line in result.stdout.splitlines()] == ["n", "1"]
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: cannot read the run record runs/")
    assert line.endswith("delete its folder to do the run again")


def test_wrong_usage_in_a_real_process(environment, here):
    done = subprocess.run(
        [sys.executable, "-m", "gumbel_mpnn", "train", "cora", "--seedz", "3"],
        env=environment, cwd=here, capture_output=True, text=True,
    )  # fmt: skip
    check_one_sentence(done.returncode, done.stdout, done.stderr, "no such option: --seedz")


def test_in_a_real_process(environment, here):
    done = subprocess.run(
        [sys.executable, "-m", "gumbel_mpnn", "train", "corra", "--format", "json"],
        env=environment, cwd=here, capture_output=True, text=True,
    )  # fmt: skip
    check_one_sentence(done.returncode, done.stdout, done.stderr, "did you mean 'cora'")
    assert list(here.iterdir()) == []
