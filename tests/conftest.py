"""Fixtures that every test may use."""

import gc
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
import torch

from gumbel_mpnn.training import trainer
from gumbel_mpnn.training.trainer import Trainer

# The graphs of the tests are so small that a second thread only makes the first one wait.
torch.set_num_threads(1)
# No test is timed, and a busy machine is slow.
hypothesis.settings.register_profile("without deadline", deadline=None)
hypothesis.settings.load_profile("without deadline")
# Every file of a run is synced to the disk, which a busy disk takes long for; in memory it takes no time.
MEMORY_DISK, ROOM = Path("/dev/shm"), 4 * 2**30
if MEMORY_DISK.is_dir() and os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free > ROOM:
    os.environ.setdefault("TMPDIR", str(MEMORY_DISK))
    tempfile.tempdir = None  # so that it is looked up again
LONG_FIRST = (
    "integration/test_cluster.py",
    "integration",
    "faults",
    "unit/runs/test_workers.py",
    "unit/candidates",
    "unit/test_documentation.py",
    "unit/test_benchmark_scripts.py",
    "experiments",
    "unit/runs",
    "unit/cli",
    "unit/graph",
    "unit/nn",
    "unit/training",
)
"""Folders and files with the longest tests, so that no process is left alone with one of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    places = [here / name for name in LONG_FIRST]

    def rank(item: pytest.Item) -> int:
        return next((k for k, place in enumerate(places) if item.path.is_relative_to(place)), len(places))

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    """Leave out of garbage collection what was imported and collected: it stays, and there is a lot of it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _collected() -> Iterator[None]:
    """Leave out what a module imported or compiled, too, without its garbage."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No network, no data root of this machine, and an empty cache, which is given: only own files are found."""

    def no_network(url: object, timeout: float | None = None) -> None:
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home-cache"))
    monkeypatch.delenv("GUMBEL_MPNN_DATA", raising=False)
    return tmp_path / "home-cache" / "gumbel-mpnn"


@pytest.fixture
def every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training reports and writes a checkpoint after every epoch, however short a time that took."""
    monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", 0)
    monkeypatch.setattr(trainer, "CHECKPOINT_SHARE", float("inf"))
    monkeypatch.setattr(trainer, "REPORT_SECONDS", 0)


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function after whose call every step of training is an error."""
    return lambda: monkeypatch.setattr(Trainer, "step", lambda _: pytest.fail("trained"))


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, int]]]:
    """The groups that are trained from now on, each by the (split, seed) of its replicas."""
    groups: list[list[tuple[int, int]]] = []
    begin = Trainer.__init__

    def note(self: Trainer, task: object, settings: object, replicas: list, **options: object) -> None:
        groups.append([(replica.split, replica.seed) for replica in replicas])
        begin(self, task, settings, replicas, **options)

    monkeypatch.setattr(Trainer, "__init__", note)
    return groups


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with the benchmarks' files; without it the test is skipped."""
    root = os.environ.get("GUMBEL_MPNN_DATA")
    if not root:
        pytest.skip("GUMBEL_MPNN_DATA is not set: there are no benchmark files to test on")
    return Path(root)
