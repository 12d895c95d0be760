"""`python -m experiments`: tables, pages and mistakes."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import PAGES, Experiment, paper
from experiments.__main__ import main
from experiments.paper.accuracy import Backbones
from experiments.paper.measures import Measures
from helpers import small_data

QUICK = ("--set", "train.epochs=2", "--set", "model.hidden_channels=4", "--device", "cpu", "--quiet")


@pytest.fixture
def command(folder, small, monkeypatch, capsys):
    """Runs the command, on a data set tiny that is here and on cora, which is not; gives status, output and errors."""
    small("tiny", make=lambda: small_data(nodes=30))
    jobs = [replace(job, dataset=dataset, preset="") for dataset in ("tiny", "cora") for job in Backbones().plan()[:4]]
    monkeypatch.setattr(Backbones, "plan", lambda self: jobs)
    monkeypatch.setattr(Measures, "datasets", ("tiny", "cora"))

    def run(*arguments):
        try:
            status = main(list(map(str, arguments)))
        except SystemExit as error:  # of wrong options
            status = error.code
        return status, *capsys.readouterr()

    return run


def rows_of(file):
    with Path(file).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def test_our_numbers_beside_the_papers(command):
    status, out, errors = command("backbones", "--seeds", "1", *QUICK)
    lines = out.splitlines()
    assert (status, len(lines)) == (0, 2 + 8)
    assert lines[0].split("  ")[0] == "data set"
    assert lines[7].split()[:8] == ["cora", "GCN", "–", "–", "–", "–", "–", "87.47"]
    assert errors == "no data: the files of cora were not found; `gumbel-mpnn data` lists them\n"


def test_a_page_has_the_command_the_machine_a_table_and_its_rows_beside_it(command, folder):
    call = ("backbones", "--only", "tiny, mlp,gcn", "--splits", "0", "--seeds", "1", *QUICK, "--out", "docs/a page.md")
    status, out, errors = command(*call)
    assert (status, out, errors) == (0, "", "")
    page = (folder / "docs/a page.md").read_text()
    assert page.startswith("# Plain models\n\nMade by\n\n```\npython -m experiments backbones --only 'tiny, mlp,gcn'")
    assert "--out 'docs/a page.md'\n```\n\non cpu (" in page
    assert "| tiny | ours | " in page
    assert "The notes below describe the full table" in page
    rows = rows_of("docs/a page.csv")
    assert [(row["dataset"], row["model"], row["n"]) for row in rows] == [("tiny", "mlp", "1"), ("tiny", "gcn", "1")]
    assert len(list(folder.rglob("record.json"))) == 2


def test_a_page_is_made_again_from_its_rows(command, folder, no_training):
    """A process that was killed between the rows and the page leaves the rows, and they are not refused."""
    command("backbones", "--only", "tiny", *QUICK, "--out", "page.md")
    no_training()
    page = (folder / "page.md").read_text()
    (folder / "page.md").write_text(page.replace("± standard error", "altered"))
    assert command("backbones", "--from-csv", "--out", "page.md")[0] == 0
    (folder / "again.csv").write_text((folder / "page.csv").read_text())
    assert command("backbones", "--from-csv", "--out", "again.md")[0] == 0
    without_notes = page.partition("All rows")[0]
    assert (folder / "page.md").read_text().startswith(without_notes)
    made_by, _, table = without_notes.partition("Test accuracy")
    assert table in (folder / "again.md").read_text()
    assert made_by not in (folder / "again.md").read_text()


def test_all_writes_every_page_of_the_paper_and_reports_what_fails(command, folder, monkeypatch):
    class Fine(Experiment):
        name, title = "fine", "Fine"

        def plan(self):
            return []

        def collect(self, results):
            return [{"a": 1}]

    class Broken(Fine):
        name = "broken"

        def collect(self, results):
            raise ValueError("a bug")

    monkeypatch.setattr(paper, "PAGES", (Broken(), Fine(), PAGES["measures"], PAGES["summary"]))
    status, _, errors = command("all", "--splits", "0", "--out", "pages", "--quiet")
    assert (status, errors.splitlines()[-1]) == (1, "failed: broken: ValueError: a bug")
    assert sorted(file.name for file in (folder / "pages").glob("*.md")) == ["fine.md", "measures.md", "summary.md"]
    assert "python -m experiments fine --splits 0" in (folder / "pages/fine.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("backbons", "there is no table called 'backbons': did you mean 'backbones'?"),
        ("backbones --only corra", "called 'corra': did you mean 'cora'"),
        ("backbones --splits a", "'a' is not a range: write it as 0-9 or 0,2,5"),
        ("backbones --seeds 0", "'0' is not a number of 1 or more"),
        ("backbones --out page.csv", "page.csv is not a Markdown file: give the page a name that ends in .md"),
        ("backbones --out mine.md", "mine.md is not a page of results: give the page of backbones another name"),
        ("backbones --out mine.md/page.md", "nothing can be written to the folder mine.md"),
        ("backbones --from-csv", "there is no file docs/results/backbones.csv: make the table first"),
        ("backbones --set train.lr=x", "train.lr"),
        ("measures --only texas", "there is no data set in this table called 'texas'"),
        ("measures --splits 0", "measures does not train models: leave out --splits and --set"),
        ("summary --only cora", "the summary covers all tables: leave out --only"),
        ("all --only cora", "all makes every table in full: leave out --only"),
    ],
)
def test_mistakes_are_told_in_a_sentence_before_training(command, folder, arguments, message):
    (folder / "mine.md").write_text("kept")
    status, out, errors = command(*arguments.split())
    assert (status, out, list(folder.rglob("record.json"))) == (2, "", [])
    assert message in errors.splitlines()[-1]
    assert (folder / "mine.md").read_text() == "kept"
