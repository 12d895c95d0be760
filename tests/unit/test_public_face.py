"""What `import gumbel_mpnn` gives."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gumbel_mpnn as gm

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S) if README.is_file() else []


@pytest.mark.parametrize("name", gm.__all__)
def test_every_public_name_is_there(name):
    assert getattr(gm, name) is not None


def test_the_names_that_the_design_promises():
    for name in ("load", "fit", "reproduce", "from_csv", "from_npz", "from_graphml", "from_networkx", "GCN", "GAT"):
        assert name in gm.__all__


@pytest.mark.parametrize("part", ["Rewirer", "SDRFModel"])
def test_parts_that_do_nothing_by_themselves_are_not_public(part):
    assert part not in gm.__all__
    assert part not in gm.rewiring.__all__
    assert not hasattr(gm.rewiring, part)


def test_dir_lists_the_public_names():
    assert sorted([*gm.__all__, "sklearn"]) == dir(gm)
    assert len(set(gm.__all__)) == len(gm.__all__)


def test_the_names_are_those_of_the_rooms():
    from gumbel_mpnn._util.errors import UserError
    from gumbel_mpnn.data import load
    from gumbel_mpnn.graph import PairGraph
    from gumbel_mpnn.nn import GCN
    from gumbel_mpnn.paper import reproduce
    from gumbel_mpnn.runs import Run, fit

    assert (gm.load, gm.fit, gm.Run, gm.PairGraph, gm.GCN, gm.UserError) == (load, fit, Run, PairGraph, GCN, UserError)
    assert gm.data.load is load
    assert gm.reproduce is reproduce


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="module 'gumbel_mpnn' has no attribute 'fitt'"):
        _ = gm.fitt
    assert not hasattr(gm, "_ROOM")


def test_the_version_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+([.+-]?\w+)*", gm.__version__)


def test_what_needs_another_package_is_there_but_not_imported_by_a_star():
    """Without scikit-learn, `from gumbel_mpnn import *` must not fail."""
    assert gm.sklearn.RewiringClassifier.__module__ == "gumbel_mpnn.sklearn.classifier"
    assert "sklearn" not in gm.__all__


def test_user_errors_are_value_errors():
    assert issubclass(gm.UserError, ValueError)


def test_the_import_does_not_wait_for_torch():
    code = "import sys, gumbel_mpnn; gumbel_mpnn.UserError; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


@pytest.mark.skipif(not BLOCKS, reason="README.md is not here or has no Python in it")
@pytest.mark.parametrize(
    "block",
    BLOCKS,
    ids=lambda block: f"line {README.read_text()[: README.read_text().index(block)].count(chr(10)) + 1}",
)
def test_what_the_readme_shows_runs(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, str(README), "exec"), {"__name__": "readme"})
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""


GUIDE = README.parent / "docs" / "guide.md"
GUIDE_BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.M | re.S) if GUIDE.is_file() else []


@pytest.mark.skipif(not GUIDE_BLOCKS, reason="docs/guide.md is not here or has no Python in it")
@pytest.mark.parametrize("block", GUIDE_BLOCKS, ids=lambda block: block.splitlines()[0])
def test_what_the_guide_shows_runs(block, tmp_path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, str(GUIDE), "exec"), {"__name__": "guide"})
    plt.close("all")
    assert [file.name for file in tmp_path.iterdir() if f'"{file.name}"' not in block] == []
    assert capsys.readouterr().err == ""


ACCURACY = README.parent / "docs" / "results" / "accuracy.md"


@pytest.mark.skipif(not (README.is_file() and ACCURACY.is_file()), reason="the documents are not here")
def test_the_table_of_the_readme_is_that_of_the_page():
    """README has the lines of the preset `tuned`, with the columns of the paper's seven models."""
    section = README.read_text().split("## Results\n")[1].split("\n## ")[0]
    head, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    names, *page = [cells_of(line) for line in ACCURACY.read_text().splitlines() if line.startswith("|")]
    places = [names.index(name) for name in cells_of(head)]
    assert len(rows) > 5
    for row in rows:
        assert cells_of(row) in [[cells[place] for place in places] for cells in page if cells[1] == "tuned"]


def cells_of(line):
    """The cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.strip("| ").split("|")]
