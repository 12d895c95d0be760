"""The GPU's search for similar nodes on the CPU, in Triton's interpreter."""

from pathlib import Path

from interpreted import run_interpreted


def test_the_screen():
    run_interpreted(Path(__file__).with_name("interpreted_screen.py"))
