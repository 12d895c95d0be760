"""`gumbel-mpnn report`: a page on finished runs."""

import json
import re

import pytest
from quick_options import GCN, QUICK

REWIRED = ("--model", "gumbel-mpnn", *QUICK)


@pytest.fixture
def trained(command, csv):
    """The folders of two settings on the same files."""

    def folder(options):
        result = command("train", *csv, *options, "--splits", "0-2", "--format", "json")
        return json.loads(result.stdout)["runs"][0].rpartition("/")[0]

    return folder(REWIRED), folder(GCN)


def content_of(path):
    found = re.search(r'id="content">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(found[1])


def test_a_page_on_two_settings(command, trained, here, no_training):
    no_training()
    result = command("report", *trained, "--out", "out/both.html")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines()[-1] == "the page is in out/both.html"
    content = content_of(here / "out/both.html")
    assert [run["name"] for run in content["runs"]] == ["Gumbel-MPNN", "GCN"]
    (graph,) = content["graphs"]
    assert graph["ids"][:2] == ["n0", "n1"]
    assert graph["classes"] == ["cat", "dog"]
    assert graph["features"]["names"] == ["height", "weight"]


def test_the_default_name_and_a_fingerprint(command, trained, here):
    fingerprint = trained[0].rpartition("/")[2]
    assert command("report", fingerprint[:8], "--quiet").stderr == ""
    table = content_of(here / "report.html")["runs"][0]["table"]
    assert [row["name"] for row in table["rows"]] == ["Gumbel-MPNN", "GCN"]
    assert [one["command"].split(" --splits ")[1] for one in table["absent"]] == [
        "0-2 --seeds 1 --runs runs --set model.hidden_channels=8 --set train.epochs=3"
    ]


def test_the_command_for_a_missing_row_makes_it(command, trained, here):
    command("report", trained[0])
    (absent,) = content_of(here / "report.html")["runs"][0]["table"]["absent"]
    result = command(*absent["command"].split()[1:])
    assert result.exit_code == 0, result.stderr
    command("report", trained[0])
    table = content_of(here / "report.html")["runs"][0]["table"]
    assert (len(table["rows"]), table["absent"]) == (3, [])


def test_files_that_have_moved(command, trained, own, here):
    for name in ("nodes.csv", "edges.csv"):
        (own / name).rename(here / name)
    result = command("report", trained[0])
    assert result.exit_code == 0, result.stderr
    assert "cannot be read again" in content_of(here / "report.html")["runs"][0]["explorer"]["missing"]
    command("report", trained[0], "--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind")
    assert len(content_of(here / "report.html")["graphs"][0]["ids"]) == 20


def test_a_file_of_another_kind_is_kept_and_a_page_is_renewed(command, trained, here):
    (here / "report.html").write_text("mine")
    result = command("report", trained[0])
    assert (result.exit_code, (here / "report.html").read_text()) == (2, "mine")
    assert "--force" in result.stderr
    assert command("report", trained[0], "--force").exit_code == 0
    assert command("report", trained[0]).exit_code == 0
    assert command("report", trained[0], "--out", "-").stdout == (here / "report.html").read_text()


def test_mistakes(command, trained, here):
    assert "there is no finished run 'nothing'" in command("report", "nothing").stderr
    assert "ends in .html" in command("report", trained[0], "--out", "page.txt").stderr
    (here / "file").touch()
    assert "file is a file" in command("report", trained[0], "--out", "file/page.html").stderr
    assert "there is no node 'nobody'" in command("report", trained[0], "--node", "nobody").stderr
    assert not (here / "report.html").exists()
