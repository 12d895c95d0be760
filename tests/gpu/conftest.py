"""What all tests on a CUDA device share."""

from pathlib import Path

import pytest
import torch

from gumbel_mpnn.training import build


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark all tests of this folder, and skip them without a CUDA device."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.gpu)
            if not torch.cuda.is_available():
                item.add_marker(pytest.mark.skip(reason="there is no CUDA device here"))


@pytest.fixture(autouse=True)
def exact_products(monkeypatch):
    """Multiply matrices in 32 bits, to compare with a CPU."""
    monkeypatch.setattr(build, "MATMUL", "ieee")
