"""The sparse GPU kernels on the CPU, in Triton's interpreter."""

from pathlib import Path

from interpreted import run_interpreted


def test_the_sparse_products():
    run_interpreted(Path(__file__).with_name("interpreted_products.py"))
