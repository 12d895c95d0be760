"""Whatever a user gets wrong: one sentence on standard error, exit code 2, nothing written."""

import pytest

from command_fixtures import GCN


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train corra", "there is no data set called 'corra': did you mean 'cora'"),
        ("train cora --model gnc", "there is no model called 'gnc': did you mean 'gcn'?"),
        ("train", "give the name of a data set, or own data as --nodes and --edges, or as --graph"),
        ("train cora --graph g.npz", "give the name of a data set, or own data"),
        ("train --graph g.npz --nodes n.csv --edges e.csv", "give the name of a data set, or own data"),
        ("train --nodes n.csv --edges e.csv --label kind", "there is no file n.csv"),
        ("train --graph g.npz", "there is no file g.npz"),
        ("train --graph g.NPZ --label kind", "an npz file has the arrays 'node_labels' and"),
        ("train cora --splits 0-99999999999", "'0-99999999999' is not a valid range"),
        ("train cora --label x --features y", "--label and --features apply to CSV and GraphML files: leave them out"),
        ("data corra", "there is no data set called 'corra': did you mean 'cora'"),
        ("train cora --epochs-from abc", "--epochs-from takes --final and all settings"),
        ("train cora --final --epochs-from abc", "there is no finished run 'abc'"),
        ("predict nothing", "there is no finished run 'nothing' in runs"),
        ("predict nothing --edges e.csv", "there is no finished run 'nothing' in runs"),
        ("audit nothing", "there is no finished run 'nothing' in runs"),
        ("report nothing", "there is no finished run 'nothing' in runs"),
        ("runs show zzz", "there is no finished run 'zzz' in runs"),
        ("runs --format json show x", "write --format after 'show'"),
        ("measure cora --run runs", "--run measures the graph of these runs: leave out the name of a data set"),
        ("train demo --on slurm", "'slurm'"),
        ("tune demo --on slurm", "'slurm'"),
        # usage
        ("trian", "no such command 'trian': did you mean 'train'? (see "),
        ("train --modle gcn", "no such option: --modle (Possible options: --model"),
        ("train cora --model", "--model' requires an argument"),
        ("train cora --seeds many", "invalid value for '--seeds': "),
        ("train cora --seeds 0", "invalid value for '--seeds': "),
        ("train cora pubmed", "got unexpected extra argument"),
        ("train cora --format jsn", "invalid value for '--format': "),
        ("rewire runs", "missing option '--out' (see "),
    ],
)
def test_without_data(refused, arguments, message):
    refused(*arguments.split(), message=message)


@pytest.mark.parametrize("verb", ["train", "data", "measure"])
def test_files_that_are_nowhere_and_no_network(command, tmp_path, verb):
    result = command(verb, "minesweeper")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "data set 'minesweeper' lacks heterophilous/minesweeper.npz, found under" in result.stderr
    assert f"put the missing files in {tmp_path / 'data'} under these names" in result.stderr


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--set modell.dropout=1", "there is no setting 'modell': did you mean 'model'?"),
        ("--set dropout=1", "cannot read the setting 'dropout=1': write it as table.name=value"),
        ("--set model.dropout=much", "option 'dropout' of model 'gcn' must be of type float"),
        ("--set model.dropout=1.5", "dropout must lie between 0 and 1, but is 1.5"),
        ("--set data.protocol=geom-gcn", "geom-gcn"),
        ("--splits a-b", "'a-b' is not a valid range: write it as 0-9 or 0,2,5"),
        ("--splits 3-1", "'3-1' is not a valid range: write it as 0-9 or 0,2,5"),
        ("--splits 0-2", "there is no split 2: this data set has splits 0 to 1"),
        ("--experiment ../out", "experiment must be the name of a single folder that is not hidden, but is '../out'"),
        ("--final --epochs-from abc", "--epochs-from takes --final and all settings: leave out --model, --splits and"),
        ("--predictions p.xlsx", "--predictions p.xlsx must end in .csv or .json: give it another ending"),
    ],
)
def test_with_data(refused, arguments, message):
    refused("train", "tiny", "--model", "gcn", *arguments.split(), message=message)


class TestOwnFiles:
    def test_columns_that_are_not_there(self, refused, own, csv):
        refused("train", *csv[:4], "--label", "knd", message="nodes.csv has no column 'knd': did you mean 'kind'?")
        refused("train", *csv, "--features", "height,wait", message="nodes.csv has no column 'wait'")
        graph = ("--graph", own / "graph.graphml")
        refused("train", *graph, "--label", "knd", message="has no attribute 'knd': did you mean")
        for files in (graph, csv[:4]):
            refused("train", *files, message="own data needs --label, the name of the column or attribute")

    def test_files_that_are_not_what_they_are_called(self, refused, own):
        for name, label in (("graph.npz", ()), ("graph.graphml", ("--label", "kind")), ("graph.csv", ())):
            (own / name).write_text("no such thing")
            refused("train", "--graph", own / name, *label, message=f"{name} is not a ")


@pytest.mark.usefixtures("tiny")
class TestTheFolderOfRuns:
    def test_an_altered_data_file(self, refused, tmp_path):
        path = tmp_path / "data/tiny/tiny.npz"
        path.write_bytes(path.read_bytes()[:-100])
        refused("train", "tiny", message=str(path))

    @pytest.mark.parametrize("place", ["runs", "runs/train", "runs/train/tiny"])
    def test_a_file_where_the_runs_should_go(self, command, here, place):
        (here / place).parent.mkdir(parents=True, exist_ok=True)
        (here / place).write_text("a diary")
        result = command("train", "tiny", *GCN)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.splitlines()[-1].startswith("error: ")
        assert place in result.stderr.splitlines()[-1]
        assert (here / place).read_text() == "a diary"

    def test_a_damaged_record(self, command, train, here):
        train("tiny", *GCN)
        next(here.rglob("record.json")).write_text("{")
        result = command("train", "tiny", *GCN)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.splitlines()[-1].startswith("error: cannot read the run record runs/")
        result = command("runs", "--format", "csv")
        assert result.exit_code == 0
        assert [line.split(",")[3] for line in result.stdout.splitlines()] == ["n", "1"]
        (line,) = result.stderr.splitlines()
        assert "cannot read the run record runs/" in line
