"""What all tests on a CUDA device share."""

import pytest

from gumbel_mpnn.training import build


@pytest.fixture(autouse=True)
def exact_products(monkeypatch):
    """Multiply matrices in 32 bits, to compare with a CPU."""
    monkeypatch.setattr(build, "MATMUL", "ieee")
