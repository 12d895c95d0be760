"""The GPU kernels on the CPU, in Triton's interpreter."""

from pathlib import Path

import pytest

from interpreted import run_interpreted


@pytest.mark.parametrize("script", ["graph/interpreted_products.py", "nn/interpreted_layers.py"])
def test_kernels(script):
    run_interpreted(Path(__file__).parents[1] / script)
