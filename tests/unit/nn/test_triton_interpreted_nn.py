"""The GPU kernels of norm, ReLU and dropout on the CPU, in Triton's interpreter."""

from pathlib import Path

from interpreted import run_interpreted


def test_norm_relu_and_dropout():
    run_interpreted(Path(__file__).with_name("interpreted_layers.py"))
