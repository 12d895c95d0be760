"""`gumbel-mpnn audit`, `report` and `demo`: what is shown of finished runs."""

import csv as csv_format
import json
import re

import pytest

import gumbel_mpnn as gm
from command_fixtures import GCN, REWIRED
from gumbel_mpnn.report import demo as demo_module


@pytest.fixture
def trained(train, csv):
    return train(*csv, *REWIRED, "--splits", "0-1")


class TestAudit:
    def test_the_tables(self, command, trained):
        result = command("audit", trained, "--top", "3")
        assert result.exit_code == 0, result.stderr
        head, _, *rows = result.stdout.splitlines()
        assert head.split()[:4] == ["kind", "source", "target", "evidence"]
        assert [row.split()[0] for row in rows] == ["edge"] * 3 + ["missing"] * 3
        first = gm.load_run(trained).audit().edges.iloc[0]
        assert rows[0].split()[1:3] == [first["source"], first["target"]]

    def test_json_and_csv(self, command, train, trained, csv):
        shown = json.loads(command("audit", trained, "--top", "2", "--format", "json").stdout)
        assert (len(shown["edges"]), len(shown["missing"])) == (2, 2)
        text = command("audit", trained, "--top", "2", "--format", "csv").stdout
        rows = list(csv_format.DictReader(text.splitlines()))
        assert [float(row["evidence"]) for row in rows[:2]] == [row["evidence"] for row in shown["edges"]]
        assert rows[0]["source_known"] in ("True", "False")
        plain = json.loads(command("audit", train(*csv, *GCN, "--splits", "0"), "--format", "json").stdout)
        assert plain["edges"][0]["probability"] is None

    def test_a_file_with_everything(self, command, trained, here):
        result = command("audit", trained, "--out", "out/audit.csv")
        assert (result.exit_code, result.stdout) == (0, "")
        with (here / "out/audit.csv").open(newline="") as file:
            rows = list(csv_format.DictReader(file))
        assert sum(row["kind"] == "edge" for row in rows) == 40
        assert result.stderr.endswith(f"40 edges and {len(rows) - 40} missing pairs are in out/audit.csv\n")


def content_of(path):
    found = re.search(r'id="content">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(found[1])


class TestReport:
    def test_a_page_on_two_settings(self, command, train, trained, csv, here, no_training):
        plain = train(*csv, *GCN, "--splits", "0-1")
        no_training()
        result = command("report", trained, plain.rpartition("/")[2][:8], "--out", "out/both.html")
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.splitlines()[-1] == "the page is in out/both.html"
        content = content_of(here / "out/both.html")
        assert [run["name"] for run in content["runs"]] == ["Gumbel-MPNN", "GCN"]
        table = content["runs"][0]["table"]
        assert [row["name"] for row in table["rows"]] == ["Gumbel-MPNN", "GCN"]
        assert table["absent"] == ["control, edges not learned"]
        (graph,) = content["graphs"]
        assert (graph["ids"][:2], graph["classes"]) == (["n0", "n1"], ["cat", "dog"])
        assert graph["features"]["names"] == ["height", "weight"]

    def test_files_that_have_moved(self, command, trained, own, here):
        for name in ("nodes.csv", "edges.csv"):
            (own / name).rename(here / name)
        assert command("report", trained, "--quiet").stderr == ""
        assert "cannot be read again" in content_of(here / "report.html")["runs"][0]["explorer"]["missing"]
        files = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind")
        assert "report.html exists" in command("report", trained, *files).stderr
        assert command("report", trained, *files, "--force").exit_code == 0
        assert len(content_of(here / "report.html")["graphs"][0]["ids"]) == 20
        assert command("report", trained, *files, "--out", "-").stdout == (here / "report.html").read_text()

    def test_mistakes(self, refused, trained):
        refused("report", trained, "--out", "page.txt", message="must end in .html or .htm")
        refused("report", trained, "--node", "nobody", message="there is no node 'nobody'")


class TestDemo:
    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        """A few epochs and splits."""
        describe, few = demo_module.describe, ["train.epochs=3", "model.hidden_channels=8"]
        monkeypatch.setattr(
            demo_module, "describe", lambda data, model, **_: describe(data, model, splits=[0, 1], overrides=few)
        )

    def test_a_table_a_page_and_a_figure(self, command, here, no_training):
        result = command("demo", "--device", "cpu", "--format", "json")
        assert result.exit_code == 0, result.stderr
        shown = json.loads(result.stdout)
        assert [one["model"] for one in shown[:-1]] == list(demo_module.MODELS)[:-1]
        assert shown[-1]["choice"]["chosen"]
        assert {(one["dataset"], one["n"]) for one in shown} == {("demo", 2)}
        out = here / "gumbel-mpnn-demo"
        assert sorted(path.name for path in out.iterdir()) == ["demo.html", "demo.md", "demo.png", "runs"]
        assert (out / "demo.md").read_text().startswith("| data set | model | ")
        assert content_of(out / "demo.html")["runs"][0]["name"] == "Gumbel-MPNN"
        assert "open gumbel-mpnn-demo/demo.html in a browser" in result.stderr.splitlines()[-1]
        no_training()
        again = command("demo", "--device", "cpu")
        assert [line.split()[1].rstrip(":") for line in again.stdout.splitlines()[2:]] == list(demo_module.MODELS)
        assert "mlp on demo: all 2 runs were already finished" in again.stderr
