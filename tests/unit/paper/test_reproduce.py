"""`gm.reproduce`, called from Python."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import gumbel_mpnn as gm
from gumbel_mpnn._util.errors import UnknownNameError
from gumbel_mpnn.paper import Experiment, Request
from gumbel_mpnn.paper.tables import experiments, requested_jobs

BOTTLENECK = {
    "only": ["bottleneck-10", "gcn"],
    "splits": [0],
    "seeds": 1,
    "overrides": ["train.epochs=1", "model.hidden_channels=4"],
    "device": "cpu",
}
SCRIPT = f"""
import time
from pathlib import Path
import gumbel_mpnn as gm
from gumbel_mpnn.paper import reproduction

def after_the_worker(*arguments, run_jobs=reproduction.run_jobs, **options):
    while not list(Path("runs").rglob("record.json")):
        time.sleep(0.05)
    return run_jobs(*arguments, **options)

if __name__ == "__main__":
    import os
    os.cpu_count = lambda: 2
    reproduction.run_jobs = after_the_worker
    options = {BOTTLENECK!r} | {{"only": None, "dataset": "leaf-count-3", "overrides": {BOTTLENECK["overrides"]!r}}}
    print(len(gm.reproduce("long-range", **options, workers=2).rows))
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def two_tables(monkeypatch):
    """One table that works and one that does not."""

    class Fine(Experiment):
        name, title, headings = "fine", "Fine", {}

        def plan(self):
            return []

        def collect(self, results):
            return [{"a": 1}]

    class Broken(Fine):
        name = "broken"

        def collect(self, results):
            raise ValueError("a bug")

    monkeypatch.setattr("gumbel_mpnn.paper.tables.experiments", {"broken": Broken(), "fine": Fine()})
    monkeypatch.setattr("gumbel_mpnn.paper.tables.analyses", {})


def test_rows_runs_and_page(capfd):
    messages = []
    done = gm.reproduce("bottleneck", **BOTTLENECK, out="pages/b.md", note=messages.append)
    (row,) = done.rows
    assert (row["model"], row["nodes"], row["n"]) == ("gcn", 10, 1)
    assert [run.n for run in done.runs] == [1]
    assert done.pages == (Path("pages/b.md"),)
    assert messages == ["the page is in pages/b.md; next to it: b.csv, b.png, b.pdf"]
    assert "gumbel-mpnn reproduce bottleneck --only bottleneck-10,gcn --splits 0" in Path("pages/b.md").read_text()
    assert capfd.readouterr() == ("", "")


def test_the_page_can_be_written_later(two_tables):
    done = gm.reproduce("fine")
    assert not list(Path().iterdir())
    assert done.write("fine.md") == [Path("fine.md"), Path("fine.csv")]


def test_names_as_text_are_names_as_a_list(tmp_path):
    rows = gm.reproduce("measures", only="cora, actor", root=tmp_path).rows
    assert rows == gm.reproduce("measures", only=["cora", "actor"], root=tmp_path).rows


def test_all_tables_from_python(two_tables):
    messages = []
    done = gm.reproduce("all", out="pages", note=messages.append)
    assert done.page.name == "summary"
    assert done.pages == (Path("pages/fine.md"), Path("pages/summary.md"))
    assert done.failed == {"broken": "ValueError: a bug"}
    assert messages[-1] == "failed: broken: ValueError: a bug"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 0}, "seeds must be at least 1, but is 0"),
        ({"workers": 0}, "workers must be at least 1, but is 0"),
        ({"splits": 3}, "splits are a list of whole numbers"),
        ({"out": "page"}, "page is not a Markdown file"),
        ({"only": ["nowhere"]}, "no data set, model, preset or setting in this table called 'nowhere'"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(gm.UserError, match=message):
        gm.reproduce("backbones", **options)


def test_an_unknown_table():
    with pytest.raises(UnknownNameError, match="there is no table called 'acuracy': did you mean 'accuracy'"):
        gm.reproduce("acuracy")


@pytest.mark.parametrize(("quick", "seeds"), [(False, 3), (True, 1)])
def test_seeds_by_default(two_tables, quick, seeds):
    assert gm.reproduce("fine", quick=quick).request.seeds == seeds


@pytest.mark.parametrize(("splits", "text"), [((0,), "0"), ((0, 1, 2), "0-2"), ((0, 2), "0,2"), ((1, 0), "1,0")])
def test_splits_in_the_command(splits, text):
    assert f" --splits {text} " in Request(splits=splits).command("backbones", Path("page.md"))


def test_workers_of_a_script(tmp_path):
    """The worker is a new process that imports the script; the script waits until the worker has trained a run."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "4\n", "")


def test_workers_of_a_thread(monkeypatch):
    """Signals cannot be handled there, so the workers are started without."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    options, rows = {**BOTTLENECK, "only": "gcn,bottleneck"}, []
    thread = threading.Thread(target=lambda: rows.extend(gm.reproduce("bottleneck", **options, workers=2).rows))
    thread.start()
    thread.join()
    assert {row["model"] for row in rows} == {"gcn"}


def test_an_empty_selection_is_refused(tmp_path):
    with pytest.raises(gm.UserError, match="`only` is empty"):
        gm.reproduce("accuracy", only=[], runs=tmp_path)


@pytest.mark.parametrize(
    ("table", "only", "settings"),
    [
        ("poison", ("attacked-cora", "gcn", "default", "meta-0.25"), ["default", "meta-0.25"]),
        ("flood", ("cora", "gcn", "flooded-10000"), ["flooded-10000"]),
        ("missing", ("cora", "gcn"), [f"without-{share}" for share in (0.1, 0.3, 0.5, 0.7, 0.9)]),
        ("auto", ("blogcatalog", "auto"), ["per-class-20-30", "random-48-32-20"]),
    ],
)
def test_settings_of_the_data_select_rows(table, only, settings):
    jobs = requested_jobs(experiments[table], Request(only=only))
    assert [job.setting for job in jobs] == settings
