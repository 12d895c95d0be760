"""The benchmarks run, on a toy, and the page of their results says what the result files say."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def contents():
    return {path: path.read_bytes() for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".pyc"}


pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not part of this copy")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A function that runs a script as if it had been started in an empty folder, and gives the lines it prints."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # for processes that it starts
    monkeypatch.chdir(tmp_path)

    def run_script(script, *arguments):
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        runpy.run_path(str(FOLDER / script), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run_script


@pytest.fixture
def run_toy(run, tmp_path):
    """A function that runs a script on a toy, which must leave nothing behind."""

    def run_script(script, *arguments):
        before = contents()
        lines = run(script, "--toy", *arguments)
        assert contents() == before
        assert list(tmp_path.iterdir()) == []
        return [line for line in lines if not line.startswith("no GPU")]

    return run_script


@pytest.fixture
def toy_result(run, tmp_path):
    """A function that runs a script on a toy and gives what it writes where it is told to."""

    def result_of(script):
        before = contents()
        run(script, "--toy", "--out", str(tmp_path / "out"))
        assert contents() == before
        result = json.loads((tmp_path / "out" / script).with_suffix(".json").read_text())
        assert result["benchmark"] == script.removesuffix(".py")
        assert set(result["machine"]) >= {"processor", "gpu", "torch", "torch_geometric"}
        return result

    return result_of


@pytest.fixture
def module(monkeypatch):
    """A function that imports one of the benchmarks' modules."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return __import__


def names(rows):
    return [re.split(r"  +", row.strip())[0] for row in rows]


def test_a_training_step_against_pyg(run_toy):
    title, *rows = run_toy("step_cpu.py")
    assert title.startswith("step_cpu: graph a random graph, nodes 200, arcs ")
    assert names(rows) == ["PyG GCNConv", "PyG GCNConv, CSR", "our GCN", "Gumbel-MPNN", "Gumbel-MPNN, own loop"]
    assert re.search(r"\d+\.\d\d ms   1\.000 of PyG GCNConv$", rows[0])
    assert all(re.search(r"\d+\.\d\d ms   \d+\.\d{3} of PyG GCNConv$", row) for row in rows[1:])


def test_from_a_file_to_a_trained_model(toy_result, module, tmp_path):
    result = toy_result("from_file_gpu.py")
    assert [row["edges"] for row in result["rows"]] == [3000]
    assert set(result["rows"][0]) >= {"read_s", "candidates_s", "lay_out_s", "train_s", "host_gib"}
    assert "| 3,000 | 500 |" in module("page").render("from_file_gpu", tmp_path / "out")


def test_reading_files(run_toy):
    pytest.importorskip("pyarrow")
    title, *rows = run_toy("reading.py")
    assert title.startswith("reading: file | edges")
    assert [row.split(" | ")[:2] for row in rows] == [[f"  {kind}", "2,000"] for kind in ("npz", "parquet", "csv")]


@pytest.mark.parametrize("what", [(), ("--check",)])
def test_coefficients_of_the_estimate(run_toy, monkeypatch, what):
    monkeypatch.setattr("torch.set_num_threads", lambda count: None)
    title, *rows = run_toy("estimate.py", *what)
    assert title.startswith("estimate")
    assert re.search(r"^  (sage|mlp) 2 x \d+, [\d,]+ nodes, [\d,]+ edges, \d+ features: \d+\.\d+ GiB", rows[0])
    assert len(rows) == 3 if what else rows[-1].startswith("  two_hop_arc_s ")


def test_sdrf_against_a_dense_version(run_toy):
    *_, header, _, row, _ = run_toy("sdrf.py")
    cells = {name.strip(): cell.strip() for name, cell in zip(header.split("|"), row.split("|"), strict=True)}
    assert (cells["graph"], cells["nodes"], cells["steps"]) == ("toy", "60", "20")
    assert int(cells["times faster"].replace(",", "")) > 0


def test_mixtures_against_scikit_learn(run_toy):
    assert any(
        re.search(r"ours \d+\.\d\d s, scikit-learn \d+\.\d\d s, \d+\.\d times", line) for line in run_toy("mixtures.py")
    )


def test_listing_runs(run_toy):
    title, *rows = run_toy("list_runs.py")
    assert title == "list_runs: runs 300, settings 10"
    assert names(rows) == ["every record read", "listed, no index yet", "listed", "filtered"]


def test_candidates_against_scikit_learn(run_toy):
    title, *rows = run_toy("candidates.py")
    assert title == "candidates: nodes 300, features 128, edges 2100, per node 5"
    assert names(rows) == ["scikit-learn, brute force", "Local", "Global, 2 |E| pairs", "TwoHop"]


def test_parts_against_the_whole(toy_result):
    """On a graph so small that the approximate search is exact: pynndescent compiles its functions for long."""
    result = toy_result("partitions.py")
    (row,) = result["results"]
    assert row["parts"]["largest_nodes"] < row["whole"]["largest_nodes"] == 400
    assert abs(row["parts"]["test"] - row["whole"]["test"]) < 20
    assert row["candidates"]["recall"] == 1


@pytest.mark.browser
@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no chromium on the path")
def test_the_explorer_in_a_browser(toy_result):
    pytest.importorskip("selenium")
    result = toy_result("page_browser.py")
    assert result["facts"]["drawn"].startswith("60 nodes and ")
    assert len(result["frames"]) == 2
    assert all(0 < of["fps"] < 500 for of in result["frames"].values())


def test_what_learned_edges_add(run_toy):
    lines = run_toy("learning.py")
    assert lines[0] == "14 fits on 2 graphs, 1 workers"
    assert [line.split(":")[0] for line in lines if line.startswith(("demo", "wine"))] == ["demo", "wine"]
    rows = [line[:48].strip() for line in lines if line.startswith("  judged")]
    assert rows == ["judged-appnp", "judged-appnp, gcn in place of it"] * 2


def test_the_page_of_auto_has_the_table_of_learning(run):
    lines = run("learning.py", "--summary")
    assert len(lines) > 2
    for page in ("docs/results/auto.md", "src/gumbel_mpnn/paper/notes/auto.md"):
        assert "\n".join(lines) in (FOLDER.parent / page).read_text(encoding="utf-8")


def test_differences_are_paired_and_the_best_control_counts(module):
    learning = module("learning")
    case = learning.Case("demo", splits=2)

    def values(option, model, *shares):
        of = learning.Fit(case, option, model)
        return learning.Values(of, {f"split{k}": share for k, share in enumerate(shares)}, 0.0)

    found = [
        values("gcn", "gcn", 0.5, 0.9),
        values("judged-appnp", "gumbel-mpnn", 0.6, 0.9),
        values("judged-appnp", "frozen", 0.5, 0.6),
        values("judged-appnp", "random", 0.4, 0.4),
    ]
    about = learning.compared(found)["demo"]
    assert about["best"] == ["gcn", "gcn", pytest.approx(70)]
    row = about["options"]["judged-appnp"]
    # Differences of 10 and 30 to frozen, the better control, and of 10 and 0 to the GCN.
    assert row["over its control"] == pytest.approx((20, 10))
    assert row["over the best"] == pytest.approx((5, 5))


def test_rules_of_choice(run_toy):
    lines = run_toy("choice_rule.py")
    assert lines[0] == "2 splits of 1 graphs"
    assert len(lines) == 1 + 2 * 7


def test_rules_by_hand(module):
    """A plain rung is ahead of another by 2 points, and one that rewires by 1 more; the error is 4 points."""
    rules = module("choice_rule")
    val = dict.fromkeys([rung.name for rung in rules.RUNGS], 0.5) | {"mlp": 0.77, "gcn": 0.79, "judged-appnp": 0.8}
    split = rules.Split(val, dict.fromkeys(val, 0.1) | {"mlp": 0.4, "gcn": 0.6, "judged-appnp": 0.7}, val_nodes=100)
    assert [rules.plainest(split, share) for share in (0.0, 0.5, 1.0)] == ["judged-appnp", "gcn", "mlp"]
    assert [rules.plain_or_best(split, share) for share in (0.0, 0.5, 1.0)] == ["judged-appnp", "gcn", "gcn"]
    judged = rules.judged({"graph": [split]}, rules.plainest, 1.0)
    assert judged["gain"] == judged["worst graph"] == pytest.approx(-20)
    assert (judged["splits below"], judged["behind the best on test"]) == (1, pytest.approx(30))


def test_fused_layers(run_toy):
    _, *rows = run_toy("fused_gpu.py")
    parts = [f"{part}, toy, {who}" for part in ("activate", "linear_sum") for who in ("ours", "torch", "torch.compile")]
    assert names(rows) == parts


def test_starting_the_command(run_toy):
    title, *rows = run_toy("start_up.py")
    assert title == "start_up: graph generated"
    assert names(rows) == [
        "typer, --help",
        "gumbel-mpnn --help",
        "gumbel-mpnn train, to the end of its first step",
        "gumbel-mpnn train, one epoch",
    ]


def test_a_training_step_on_a_gpu(toy_result):
    result = toy_result("step_gpu.py")
    assert result["left_out"] == {}
    assert (result["facts"]["nodes"], result["facts"]["arcs"]) == (300, 2000)
    assert list(result["median_ms"])[:2] == ["PyG GCNConv, edges only", "PyG GCNConv, all arcs"]
    assert {"Gumbel rewiring, plainly", "our GCN, all arcs", "Gumbel-MPNN", "Gumbel-MPNN, bfloat16"} < set(
        result["median_ms"]
    )
    assert set(result["peak_gib"]) == set(result["median_ms"])
    counted = result["counted"]["Gumbel-MPNN"]
    assert counted["bytes"] == sum(term["bytes"] for term in result["terms"])
    assert counted["share"] == pytest.approx(counted["ceiling_ms"] / result["median_ms"]["Gumbel-MPNN"])


def test_growing_graphs_on_a_gpu(toy_result):
    result = toy_result("scale_gpu.py")
    assert [(row["arcs"], row["nodes"]) for row in result["rows"]] == [(1000, 40), (2000, 80)]
    assert result["did_not_fit"] is None
    for row in result["rows"]:
        assert row["step_ms_per_million"] == pytest.approx(row["step_ms"] * 1e6 / row["arcs"])


def test_many_runs_on_a_gpu(toy_result):
    result = toy_result("replicas_gpu.py")
    assert result["left_out"] == {}
    each = result["ms_per_run_and_epoch"]
    assert result["times_the_throughput_of"]["GCN"]["PyG GCN"] == pytest.approx(
        each["PyG GCN"] / each["our GCN, 3 at once"]
    )
    assert result["at_once"]["our Gumbel-MPNN, 3 at once"] == 3
    assert result["roc_auc"]["times_faster"] > 0


def test_many_runs_on_a_cpu(toy_result, module):
    result = toy_result("replicas_cpu.py")
    assert [(row["program"], row["at_once"]) for row in result["rows"]] == [
        (program, count) for program in ("GCN 2 x 8", "Gumbel-MPNN 2 x 8") for count in (1, 2)
    ]
    last = result["rows"][-1]
    assert last["layer_mib"] == pytest.approx(4 * 2 * result["facts"]["nodes"] * 8 / 2**20)
    assert last["ms"] > 0
    assert f"| Gumbel-MPNN 2 x 8 | 2 | 0.0 | {last['ms']:.2f} |" in module("page").replicas_cpu(result)


def test_several_processes_on_a_gpu(module, tmp_path):
    """In a process of its own: those that it starts import it by its name."""
    script = [sys.executable, str(FOLDER / "workers_gpu.py"), "--toy", "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("CUDA_MPS_PIPE_DIRECTORY", None)
    assert subprocess.run(script, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL).returncode == 0
    result = json.loads((tmp_path / "workers_gpu.json").read_text())
    (alone,) = result["epochs_per_second_alone"].values()
    assert alone > 0
    assert len(result["shares"]["2"]) == 2
    assert result["work_of_one_after_the_other"]["2"] == pytest.approx(sum(result["shares"]["2"]))
    page = module("page").workers_gpu(result)
    assert f"| 2 | {sum(result['shares']['2']):.2f} |" in page


def test_the_plain_rewiring_is_the_same_model_written_in_two_ways(module):
    import torch

    peers = module("peers")
    x, pairs = torch.randn(6, 5), torch.tensor([[0, 0, 1, 3], [1, 2, 4, 5]])
    given = torch.tensor([True, False, True, False])
    plain = peers.PlainGumbel(5, 8, 3, 2, 4, factorised=False).eval()
    factorised = peers.PlainGumbel(5, 8, 3, 2, 4, factorised=True).eval()
    factorised.load_state_dict(plain.state_dict())
    torch.testing.assert_close(plain(x, pairs, given), factorised(x, pairs, given))


def test_the_generated_graph_has_the_counts_asked_for(module):
    import torch

    data = module("power_law").problem(400, 3001, 3, 5, torch.device("cpu"))
    assert (data.edge_index.shape[1], data.candidate_index.shape[1]) == (1500, 1501)
    pairs = torch.cat([data.edge_index, data.candidate_index], 1)
    assert (pairs[0] < pairs[1]).all()
    assert pairs.unique(dim=1).shape == pairs.shape
    degree = torch.bincount(data.edge_index.reshape(-1), minlength=400)
    assert degree.max() > 8 * degree.float().median()  # a heavy tail
    assert int(data.y.max()) + 1 == 5


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
    parameters = (3 * 5 + 5 * 5 + 1) + (3 * 4 + 4) + (4 * 2 + 2)
    assert terms["Adam"].bytes == 7 * 4 * parameters
    twice = cost.step_terms(replace(size, nodes=20, pairs=40))
    for one, two in zip(cost.step_terms(size), twice, strict=True):
        times = 1 if one.name == "Adam" else 2
        assert (two.bytes, two.flops) == (times * one.bytes, times * one.flops)
    plain = {term.name: term for term in cost.plain_step_terms(size)}
    assert set(terms) - set(plain) == {
        *("encode the features", "scale to length 1", "times the form's matrix"),
        *("scores of the pairs", "gradient of the scores", "draw, degrees"),
    }
    # Without learned weights no node's own row is read for them, and no arc's gradient written.
    gradients = "layer 1: gradients along the arcs"
    assert terms[gradients].bytes - plain[gradients].bytes == 40 * 4 + 10 * 3 * 4
    assert terms[gradients].flops == 2 * plain[gradients].flops
    assert plain["Adam"].bytes == 7 * 4 * ((3 * 4 + 4) + (4 * 2 + 2))
    assert cost.seconds_at([cost.Term("a", 6, 1), cost.Term("b", 1, 8, matmul=True)], 2.0, 1.0, 4.0) == 3 + 2


def test_the_count_of_an_evaluation(module):
    cost = module("cost")
    # 7 of the 30 features are not 0.
    size = cost.Sizes(nodes=10, pairs=20, features=3, width=2, layers=1, classes=2, channels=5, words=7)
    step = {term.name: term for term in cost.plain_step_terms(size)}
    evaluation = {term.name: term for term in cost.evaluation_terms(list(step.values()))}
    parts = ["times its matrix", "sum along the arcs", "bias, ReLU, dropout"]
    assert list(evaluation) == [*(f"layer 1: {part}" for part in parts), "head"]
    # A row of the matrix for each feature that is not 0, its index and value; a row of the result for each node.
    forward = 7 * (2 * 4 + 4 + 4) + 10 * 2 * 4
    assert evaluation["layer 1: times its matrix"].bytes == forward
    assert step["layer 1: times its matrix"].bytes == forward + 7 * (2 * 4 + 4 + 4) + 3 * 2 * 4
    assert evaluation["layer 1: sum along the arcs"].bytes == step["layer 1: sum along the arcs"].bytes
    assert 3 * evaluation["head"].flops == step["head"].flops


def test_the_page_says_what_the_files_say(run):
    with pytest.raises(SystemExit) as end:
        run("page.py", "--check")
    assert end.value.code is None


def test_a_page_is_filled_from_results(module, toy_result, tmp_path):
    page = module("page")
    text = "before\n<!-- table: replicas_gpu -->\nold\n<!-- end -->\nafter <!-- table: step_gpu -->\n<!-- end -->\n"
    assert "Not measured yet (`python benchmarks/step_gpu.py`)." in page.fill(text, tmp_path)
    result = toy_result("replicas_gpu.py")
    filled = page.fill(text, tmp_path / "out")
    assert filled.startswith("before\n")
    assert "old" not in filled
    assert f"| PyG GCN | 1 | {result['ms_per_run_and_epoch']['PyG GCN']:.3f} |" in filled
    assert page.fill(filled, tmp_path / "out") == filled


def test_a_gpu_is_named_only_where_it_is_used(module):
    of = {"processor": "Some CPU", "threads": "2", "gpu": "Some GPU", "torch": "2", "torch_geometric": "2"}
    named = {
        name: "Some GPU" in module("page").machine({"benchmark": name, "machine": of})
        for name in ("step_gpu", "workers_gpu_mps", "partitions", "step_cpu", "reading")
    }
    assert named == {"step_gpu": 1, "workers_gpu_mps": 1, "partitions": 1, "step_cpu": 0, "reading": 0}
    without = {"benchmark": "partitions", "machine": {**of, "gpu": "none"}}
    assert "Some CPU, 2 threads" in module("page").machine(without)


def test_what_a_billion_edges_need_is_calculated(module, tmp_path):
    shown = module("page").render("billion_edges", tmp_path)
    assert "| 1,000,000,000 |" in shown
    assert "TiB" in shown or "GiB" in shown


def test_the_profile_of_a_step(run_toy):
    lines = run_toy("profile_step.py", "--rounds", "2")
    titles = [line for line in lines if not line.startswith(" ")]
    assert [re.sub(r"\d+\.\d\d ms", "", title) for title in titles] == [
        f"a generated graph, gcn, 2 runs at once, {program}: " for program in ("step", "evaluate")
    ]
    assert sum(line.endswith("aten::mm") for line in lines) == 2
