"""The benchmarks run, on a toy, and the pages of their results say what the result files say."""

import json
import os
import runpy
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not part of this copy")
TOYS = {
    "candidates": "median_ms",
    "choice_rule": "rules",
    "page_browser": "frames",
    "partitions": "results",
    "replicas_cpu": "rows",
    "replicas_gpu": "ms_per_run_and_epoch",
    "scale_gpu": "rows",
    "start_up": "median_ms",
    "step_cpu": "median_ms",
    "step_gpu": "median_ms",
}
"""Scripts that run without a GPU, at toy size, and where their results have the figures."""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs a script as if it had been started in an empty folder."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # for processes that it starts
    monkeypatch.chdir(tmp_path)

    def run_script(script, *arguments):
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        runpy.run_path(str(FOLDER / script), run_name="__main__")

    return run_script


@pytest.fixture
def module(monkeypatch):
    """A function that imports one of the benchmarks' modules."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return __import__


@pytest.mark.parametrize("name", TOYS)
def test_toys_run_and_their_results_fill_the_page(name, run, module, tmp_path):
    if name == "page_browser" and not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("there is no chromium on the path")
    before = {path: path.stat().st_mtime for path in FOLDER.rglob("*.json")}
    run(f"{name}.py", "--toy", "--out", str(tmp_path / "out"))
    assert {path: path.stat().st_mtime for path in FOLDER.rglob("*.json")} == before
    result = json.loads((tmp_path / "out" / f"{name}.json").read_text())
    assert result["benchmark"] == name
    assert set(result["machine"]) >= {"processor", "gpu", "torch", "torch_geometric"}
    assert result[TOYS[name]]
    page = module("page")
    if name in page.TABLES:
        text = f"before\n<!-- table: {name} -->\nold\n<!-- end -->\nafter <!-- table: missing -->\n<!-- end -->\n"
        filled = page.fill(text, tmp_path / "out")
        assert f"`python benchmarks/{name}.py`" in filled
        assert "Not measured yet (`python benchmarks/missing.py`)." in filled
        assert page.fill(filled, tmp_path / "out") == filled


def test_the_pages_say_what_the_files_say(run):
    with pytest.raises(SystemExit) as end:
        run("page.py", "--check")
    assert end.value.code is None


def test_the_plain_rewiring_is_the_same_model_written_in_two_ways(module):
    import torch

    peers = module("peers")
    x, pairs = torch.randn(6, 5), torch.tensor([[0, 0, 1, 3], [1, 2, 4, 5]])
    given = torch.tensor([True, False, True, False])
    plain = peers.PlainGumbel(5, 8, 3, 2, 4, factorised=False).eval()
    factorised = peers.PlainGumbel(5, 8, 3, 2, 4, factorised=True).eval()
    factorised.load_state_dict(plain.state_dict())
    torch.testing.assert_close(plain(x, pairs, given), factorised(x, pairs, given))


def test_the_count_of_bytes_and_operations(module):
    cost = module("cost")
    size = cost.Sizes(nodes=10, pairs=20, features=3, width=4, layers=1, classes=2, channels=5)
    terms = {term.name: term for term in cost.step_terms(size)}
    assert terms["scores of the pairs"].flops == 2 * 20 * 5
    # 20 rows of 5 numbers, with an index and the score of each; each node's own row once.
    assert terms["scores of the pairs"].bytes == 20 * (5 * 4 + 4 + 4) + 10 * 5 * 4
    # 40 arcs: a row of the 3 features, fewer than 4, an index, a weight; each node's own row is read, its sum written.
    assert terms["layer 1: sum along the arcs"].bytes == 40 * (3 * 4 + 4 + 4) + 2 * 10 * 3 * 4
    # The gradient must reach what was sent along the arcs: three products.
    assert terms["layer 1: times its matrix"].flops == 3 * (2 * 10 * 3 * 4)
    assert terms["head"].flops == 3 * (2 * 10 * 4 * 2)
    assert terms["Adam"].bytes == 7 * 4 * ((3 * 5 + 5 * 5 + 1) + (3 * 4 + 4) + (4 * 2 + 2))
    twice = cost.step_terms(replace(size, nodes=20, pairs=40))
    for one, two in zip(cost.step_terms(size), twice, strict=True):
        times = 1 if one.name == "Adam" else 2
        assert (two.bytes, two.flops) == (times * one.bytes, times * one.flops)
    assert cost.seconds_at([cost.Term("a", 6, 1), cost.Term("b", 1, 8, matmul=True)], 2.0, 1.0, 4.0) == 3 + 2


def test_sdrf_against_a_dense_version(run, capsys):
    run("sdrf.py", "--toy")
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| toy |")]
    assert float(row.split("|")[-2].replace(",", "")) > 0
