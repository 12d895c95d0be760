"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest
import torch

# The graphs of the tests are so small that a second thread only makes the first one wait.
torch.set_num_threads(1)
# No test may find what another one left, or leave anything in the user's cache.
os.environ["GUMBEL_MPNN_CACHE"] = "off"


@pytest.fixture
def user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, an empty one, switched on."""
    monkeypatch.setenv("GUMBEL_MPNN_CACHE", "on")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gumbel-mpnn"


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with the benchmarks' files; without it the test is skipped."""
    root = os.environ.get("GUMBEL_MPNN_DATA")
    if not root:
        pytest.skip("GUMBEL_MPNN_DATA is not set: there are no benchmark files to test on")
    return Path(root)
