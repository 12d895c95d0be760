"""The sdist and the wheel have everything, and what is installed from them works without the sources."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "gumbel_mpnn"
pytest.importorskip("hatchling", reason="hatchling, which builds the packages, is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="the project is not here, only its tests"),
]


def build(kind, project, out):
    """Build the project in a process of its own, as pip does, but with the packages that are installed."""
    code = f"from hatchling.build import build_{kind}; build_{kind}({str(out)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=project, check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The sdist, and the wheel that is built from it, as on another machine."""
    folder = tmp_path_factory.mktemp("packages")
    build("sdist", ROOT, folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    build("wheel", folder / sdist.name.removesuffix(".tar.gz"), folder)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def run(packages, tmp_path_factory):
    """Runs a program of a new environment with the wheel; other packages are those of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    programs = folder / "bin"
    install = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--no-deps", "--no-index"]
    subprocess.run([*install, str(packages[1])], check=True, capture_output=True, text=True)
    (own,) = folder.glob("lib/python*/site-packages")
    # What lies in this folder is found, but its .pth files, which may lead to the sources, are not read.
    (own / "others.pth").write_text(sysconfig.get_path("purelib"))
    # Neither the sources nor the data sets of this machine.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GUMBEL_MPNN"))}
    environment |= {"OMP_NUM_THREADS": "1"}

    def run(program, *arguments):
        done = subprocess.run(
            [str(programs / program), *arguments], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run.folder = folder
    return run


def test_nothing_of_the_sources_is_missing(packages):
    files = {str(path.relative_to(SOURCES.parent)) for path in SOURCES.rglob("*") if path.is_file()}
    wanted = {name for name in files if "__pycache__" not in name}
    assert {Path(name).suffix for name in wanted} >= {".py", ".toml", ".typed", ".js"}
    with zipfile.ZipFile(packages[1]) as wheel:
        assert wanted - set(wheel.namelist()) == set()
    with tarfile.open(packages[0]) as sdist:
        assert wanted - {name.partition("/src/")[2] for name in sdist.getnames()} == set()


def test_the_installed_package_reads_its_presets_rungs_and_data_sets(run):
    place = run("python", "-c", "import gumbel_mpnn; print(gumbel_mpnn.__file__)").strip()
    assert Path(place).is_relative_to(run.folder)
    code = "from gumbel_mpnn.settings.presets import read_preset, read_rungs; print(len(read_rungs()));"
    rungs, preset = run("python", "-c", f"{code} print(read_preset('tuned', 'cora', 'gcn').tables)").splitlines()
    assert int(rungs) > 5
    assert "hidden_channels" in preset
    assert "cora" in run("gumbel-mpnn", "data", "--format", "csv")


SHORT_DEMO = """
import sys
from gumbel_mpnn.__main__ import main
from gumbel_mpnn.report import demo
describe = demo.describe
demo.describe = lambda data, model, overrides: describe(
    data, model, splits=[0], overrides=["train.epochs=2", "model.hidden_channels=8"]
)
sys.argv = ["gumbel-mpnn", "demo", "--device", "cpu", "--format", "csv"]
main()
"""


def test_the_demo(run):
    table = run("python", "-c", SHORT_DEMO)
    assert len(table.splitlines()) == 6
    assert (run.folder / "gumbel-mpnn-demo" / "demo.png").is_file()
    page = (run.folder / "gumbel-mpnn-demo" / "demo.html").read_text(encoding="utf-8")
    assert "class Explorer" in page
    assert "Mike Bostock" in page  # the licence of the drawing library
