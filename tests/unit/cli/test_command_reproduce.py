"""`gumbel-mpnn reproduce`, on a tiny data set among the ones that are not here."""

import json
from pathlib import Path

import pytest
from quick_options import QUICK

from gumbel_mpnn.paper import backbones, measures


@pytest.fixture(autouse=True)
def two_data_sets(tiny, monkeypatch):
    monkeypatch.setattr(backbones, "DATASETS", ("tiny", "cora"))
    monkeypatch.setattr(measures.MeasuresTable, "datasets", ("tiny", "cora"))


def test_our_numbers_beside_the_papers(command):
    result = command("reproduce", "backbones", "--seeds", "1", *QUICK, "--format", "json")
    assert result.exit_code == 0
    rows = {(row["dataset"], row["model"]): row for row in json.loads(result.stdout)}
    assert list(rows) == [(dataset, model) for dataset in ("tiny", "cora") for model in ("mlp", "gcn", "sage", "gat")]
    gcn = rows["tiny", "gcn"]
    assert (gcn["n"], gcn["paper"], gcn["difference"]) == (2, None, None)
    assert 0 <= gcn["test"] <= 1
    missing = rows["cora", "gcn"]
    assert (missing["test"], missing["n"], missing["paper"], missing["best"]) == (None, None, 0.8747, "no data")
    assert {row["unit"] for row in rows.values()} == {"share"}
    assert sum(row["best"] == "by val" for row in rows.values()) >= 1


def test_quiet(command):
    result = command("reproduce", "backbones", "--only", "tiny,gcn", "--seeds", "1", *QUICK, "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "tiny" in result.stdout


def no_data_of_cora(tmp_path, root=""):
    folders = f"{root}{tmp_path / 'data'}, {tmp_path / 'cache/gumbel-mpnn'}"
    return f"no data: the files of cora were not found in {folders}; `gumbel-mpnn data` lists them"


def test_where_files_were_looked_for_in_vain_is_told(command, tmp_path, here):
    (here / "there").mkdir()
    call = ("reproduce", "backbones", "--seeds", "1", *QUICK)
    assert command(*call).stderr.splitlines()[-1] == no_data_of_cora(tmp_path)
    assert command(*call, "--data-root", "there").stderr.splitlines()[-1] == no_data_of_cora(tmp_path, "there, ")
    assert "no data" not in command(*call, "--only", "tiny").stderr


def test_only_what_is_named(command, here):
    result = command("reproduce", "backbones", "--only", "tiny, mlp,gcn", "--splits", "1", *QUICK, "--format", "csv")
    lines = result.stdout.splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["tiny", "mlp"], ["tiny", "gcn"]]
    folders = sorted(path.parent.name for path in here.rglob("record.json"))
    assert folders == sorted(["split1-seed0", "split1-seed1", "split1-seed2"] * 2)
    assert (here / "runs/backbones/tiny").is_dir()


def test_a_second_call_trains_nothing(command, no_training):
    call = ("reproduce", "backbones", "--only", "tiny,mlp", "--seeds", "1", *QUICK, "--format", "json")
    first = command(*call)
    no_training()
    assert command(*call).stdout == first.stdout


def test_the_page_has_the_command_the_machine_and_the_table(command, here):
    call = ("reproduce", "backbones", "--only", "tiny,mlp", "--splits", "0", "--seeds", "1", *QUICK)
    result = command(*call, "--out", "docs/page.md")
    assert "the page is in docs/page.md" in result.stderr
    page = (here / "docs/page.md").read_text()
    assert page.startswith("# Plain models\n")
    assert "gumbel-mpnn reproduce backbones --only tiny,mlp --splits 0 --set train.epochs=3" in page
    assert " --seeds 1 --out docs/page.md\n" in page
    assert "on cpu (" in page
    assert "| tiny | MLP | " in page


def test_the_page_may_be_in_upper_case(command, here):
    result = command("reproduce", "measures", "--only", "tiny", "--out", "PAGE.MD")
    assert (result.exit_code, sorted(path.name for path in here.glob("PAGE.*"))) == (0, ["PAGE.MD", "PAGE.csv"])


@pytest.mark.parametrize("name", ["page.csv", "page.pdf", "page", "folder.md"])
def test_a_page_has_a_name_of_its_own(command, here, name):
    (here / "folder.md").mkdir()
    result = command("reproduce", "backbones", "--only", "tiny,mlp", *QUICK, "--out", name)
    assert (result.exit_code, list(here.rglob("record.json"))) == (2, [])
    assert result.stderr == f"error: {name} is not a Markdown file: give the page a name that ends in .md\n"


@pytest.mark.parametrize(
    ("call", "folder"),
    [
        (("backbones", "--only", "tiny,mlp", "--out", "file/page.md"), "file"),
        (("backbones", "--only", "tiny,mlp", "--out", "file/further/page.md"), "file/further"),
        (("all", "--quick", "--out", "file"), "file"),
    ],
)
def test_a_file_in_the_place_of_the_folder_is_told_before_training(command, here, call, folder):
    (here / "file").touch()
    result = command("reproduce", *call, "--device", "cpu")
    assert (result.exit_code, list(here.rglob("record.json"))) == (2, [])
    assert result.stderr == f"error: nothing can be written to the folder {folder}: file is a file\n"


def test_a_single_run_has_no_spread(command, here):
    """The fault: it had one of 0, as if it were known exactly."""
    call = ("reproduce", "backbones", "--only", "tiny,mlp", "--splits", "0", "--seeds", "1", *QUICK)
    (row,) = json.loads(command(*call, "--format", "json").stdout)
    assert (row["n"], row["std"], row["stderr"]) == (1, None, None)


def test_notes_on_a_page_of_other_rows_say_what_they_are_about(command, here):
    """The fault: a page in small spoke of ten splits and of figures that it does not have."""
    sentence = "The notes below describe the full table"
    pages = {}
    for name, options in {"part": (), "small": ("--quick",)}.items():
        assert command("reproduce", "measures", "--only", "tiny", *options, "--out", f"{name}.md").exit_code == 0
        pages[name] = (here / f"{name}.md").read_text()
    for page in pages.values():
        assert page.index("| tiny |") < page.index(sentence) < page.index('"ours" counts')
    command("reproduce", "backbones", "--only", "tiny,mlp", "--seeds", "1", *QUICK, "--out", "set.md")
    assert sentence in (here / "set.md").read_text()


def test_the_command_on_the_page_can_be_pasted(command, here):
    call = ("reproduce", "backbones", "--only", "tiny, mlp", "--splits", "0", "--seeds", "1", *QUICK)
    command(*call, "--out", "a page.md")
    assert "--only tiny,mlp --splits 0" in (page := (here / "a page.md").read_text())
    assert "--out 'a page.md'\n" in page


def test_the_text_table(command):
    lines = command("reproduce", "backbones", "--only", "cora,gcn").stdout.splitlines()
    assert lines[0].split("  ")[0] == "data set"
    assert lines[2].split() == ["cora", "GCN", "–", "–", "–", "–", "–", "87.47", "0.12", "–", "no", "data"]


class TestMeasures:
    def test_ours_and_the_papers(self, command, tmp_path):
        result = command("reproduce", "measures", "--format", "json")
        assert result.exit_code == 0
        tiny, cora = json.loads(result.stdout)
        assert (tiny["dataset"], tiny["source"], tiny["degree_min"]) == ("tiny", "ours", 0)
        assert (cora["source"], cora["std_per_class"], cora["apart"]) == ("paper", 0.0957, "no data")
        assert result.stderr.splitlines() == ["measures: tiny", "measures: cora", no_data_of_cora(tmp_path)]

    def test_the_page(self, command, here):
        result = command("reproduce", "measures", "--only", "cora", "--out", "page.md")
        assert "the page is in page.md" in result.stderr
        page = (here / "page.md").read_text()
        assert page.startswith("# Measures of the data sets\n")
        assert "gumbel-mpnn reproduce measures --only cora --out page.md\n" in page
        assert "| cora | paper | 0.81 |" in page
        assert "tiny" not in page

    def test_a_data_set_that_is_not_in_it(self, command):
        result = command("reproduce", "measures", "--only", "texas")
        assert result.exit_code == 2
        assert result.stderr.startswith("error: there is no data set in this table called 'texas'")

    @pytest.mark.parametrize("option", [("--splits", "0"), ("--set", "train.epochs=1")])
    def test_nothing_is_trained(self, command, option):
        result = command("reproduce", "measures", *option)
        assert result.exit_code == 2
        assert "measures does not train models" in result.stderr


class TestSummary:
    def test_every_number_and_what_became_of_it(self, command, here):
        command("reproduce", "backbones", "--only", "tiny,gcn", "--seeds", "1", *QUICK)
        trained = set(here.rglob("*"))
        result = command("reproduce", "summary", "--seeds", "1", "--out", "summary.md", "--format", "json")
        assert result.exit_code == 0, result.stderr
        new = {path.name for path in set(here.rglob("*")) - trained}
        assert {"summary.md", "summary.csv"} <= new <= {"summary.md", "summary.csv", "index.sqlite"}  # nothing trained
        rows = json.loads(result.stdout)
        by_page = {(row["page"], row["dataset"], row["quantity"]): row for row in rows}
        assert by_page["measures", "cora", "edges"]["verdict"] == "no data"
        assert by_page["measures", "cora", "edges"]["unit"] is None
        assert by_page["accuracy", "cora", "test"]["verdict"] == "no data"
        assert (rows[0]["model"], rows[0]["paper"], rows[0]["paper_pm"]) == ("mlp", 0.7561, 0.002)
        assert rows[0]["unit"] == "share"
        assert by_page["long-range", "leaf-count", "test, 4 layers"]["verdict"] == "not run"
        page = (here / "summary.md").read_text()
        head, lead = (
            page.index("gumbel-mpnn reproduce summary --seeds 1 --out summary.md\n"),
            page.index("numbers of the paper's tables"),
        )
        counts, first = (
            page.index("| page | preset | numbers | within |"),
            page.index("| accuracy | tuned | cora | MLP |"),
        )
        assert head < lead < counts < first
        assert "- `paper`: " in page[lead:counts]
        rows = (here / "summary.csv").read_text().splitlines()
        assert rows[1].startswith("accuracy,tuned,cora,mlp,test %,75.61,0.2,")

    @pytest.mark.parametrize(("made_with", "verdict"), [("", "same"), (" --quick", "not run")])
    def test_a_table_without_runs_is_read_from_its_page_if_that_is_the_whole_table(
        self, command, here, made_with, verdict
    ):
        (here / "long-range.md").write_text(
            f"```\ngumbel-mpnn reproduce long-range --seeds 1{made_with} --out docs/long-range.md\n```\n"
        )
        (here / "long-range.csv").write_text(
            "dataset,model,layers,test,stderr,n\nleaf-count,gcn,4,99.95,0.03,30\nleaf-count,gumbel-mpnn,2,,,\n"
        )
        result = command("reproduce", "summary", "--seeds", "1", "--out", "summary.md", "--format", "json")
        rows = json.loads(result.stdout)
        verdicts = {(row["model"], row["quantity"]): row["verdict"] for row in rows if row["page"] == "long-range"}
        assert verdicts["gcn", "test, 4 layers"] == verdict
        assert verdicts["gumbel-mpnn", "test, 2 layers"] == "not run"
        named = (
            "Read from the files beside their pages, not from runs: [long-range.csv](long-range.csv)."
            in (here / "summary.md").read_text()
        )
        assert named == (not made_with)

    def test_a_table_that_trains_nothing_is_read_from_its_page(self, command, here):
        command("reproduce", "measures", "--out", "measures.md")
        rows = (here / "measures.csv").read_text().replace("tiny", "cora")
        (here / "measures.csv").write_text(rows)
        result = command("reproduce", "summary", "--out", "summary.md", "--format", "json")
        verdicts = {row["verdict"] for row in json.loads(result.stdout) if row["page"] == "measures"}
        assert "differs" in verdicts
        assert "summary: measures is read from measures.csv" in result.stderr

    @pytest.mark.parametrize("option", [("--only", "cora"), ("--dataset", "cora")])
    def test_it_takes_no_choice(self, command, option):
        result = command("reproduce", "summary", *option)
        assert result.exit_code == 2
        assert result.stderr == "error: the summary covers all tables: leave out `only` and `dataset`\n"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no folder in which not even root can write")
@pytest.mark.parametrize(
    "call",
    [
        ("reproduce", "all", "--quick", "--out", "/proc/results"),
        ("reproduce", "backbones", "--only", "tiny,mlp", "--out", "/proc/page.md"),
        ("train", "tiny", "--model", "mlp", "--predictions", "/proc/nodes.csv"),
    ],
)
def test_a_folder_in_which_nothing_can_be_written_is_told_before_training(command, here, call):
    result = command(*call, "--device", "cpu")
    assert (result.exit_code, list(here.rglob("record.json"))) == (2, [])
    assert result.stderr.startswith("error: nothing can be written to the folder /proc")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("call", [("train", "tiny"), ("measure", "tiny"), ("reproduce", "backbones"), ("data",)])
def test_a_data_root_that_is_not_there_is_told(command, here, call):
    result = command(*call, "--data-root", "nowhere")
    assert (result.exit_code, list(here.rglob("record.json"))) == (2, [])
    assert result.stderr.endswith(
        "error: there is no folder nowhere, in which data files are searched: correct --data-root (root=)\n"
    )
