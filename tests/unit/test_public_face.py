"""What `import gumbel_mpnn` gives."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gumbel_mpnn as gm


@pytest.mark.parametrize("name", gm.__all__)
def test_every_public_name_is_there(name):
    assert getattr(gm, name) is not None


@pytest.mark.parametrize("part", ["Rewirer", "SDRFModel"])
def test_parts_that_do_nothing_by_themselves_are_not_public(part):
    assert part not in gm.__all__
    assert part not in gm.rewiring.__all__
    assert not hasattr(gm.rewiring, part)


def test_dir_lists_the_public_names():
    assert sorted([*gm.__all__, "sklearn"]) == dir(gm)
    assert len(set(gm.__all__)) == len(gm.__all__)


def test_the_names_are_those_of_the_rooms():
    from gumbel_mpnn.data import load
    from gumbel_mpnn.graph import PairGraph
    from gumbel_mpnn.nn import GCN
    from gumbel_mpnn.runs.fit import fit
    from gumbel_mpnn.runs.run import Run
    from gumbel_mpnn.util.errors import UserError

    assert (gm.load, gm.fit, gm.Run, gm.PairGraph, gm.GCN, gm.UserError) == (load, fit, Run, PairGraph, GCN, UserError)
    assert gm.data.load is load


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="module 'gumbel_mpnn' has no attribute 'fitt'"):
        _ = gm.fitt
    assert not hasattr(gm, "_ROOM")


def test_the_version_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+([.+-]?\w+)*", gm.__version__)


def test_what_needs_another_package_is_there_but_not_imported_by_a_star():
    """Without scikit-learn, `from gumbel_mpnn import *` must not fail."""
    assert gm.sklearn.RewiringClassifier.__module__ == "gumbel_mpnn.sklearn"
    assert "sklearn" not in gm.__all__


def test_the_import_does_not_wait_for_torch():
    code = "import sys, gumbel_mpnn; gumbel_mpnn.UserError; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_the_citation_and_the_changelog_have_the_version():
    root = Path(__file__).parents[2]
    if not (root / "CITATION.cff").is_file():
        pytest.skip("the project is not here, only its tests")
    assert f"\nversion: {gm.__version__}\n" in (root / "CITATION.cff").read_text(encoding="utf-8")
    first = re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert first[1] == gm.__version__
