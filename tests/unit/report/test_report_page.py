"""The content of the page of a run, and the file it is written to."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

import gumbel_mpnn as gm
from gumbel_mpnn.report.page import explorer, write_page
from gumbel_mpnn.report.page.content import page_content
from gumbel_mpnn.report.page.explorer import MOST_NODES, MOST_PAIRS
from helpers import small_data
from quick_fit import quick

HOSTILE = ["<script>alert(1)</script>", "</script><b>", "__proto__", "a\"b'c", "&lt;", "{{ title }}", "\u2028"]
"""Names that would be markup, or properties of every object of JavaScript."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return quick(small_data(splits=3), "gumbel-mpnn", runs=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def content(run):
    return page_content([run])


def content_of(text):
    """The JSON of a page."""
    (found,) = re.findall(r'<script type="application/json" id="content">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


def test_edges_are_counted_as_run_changes_counts_them(run, content):
    changes, (part,) = run.changes(), content["runs"]
    assert part["structure"]["counts"] == {
        name: getattr(changes, name) for name in ("kept", "dropped", "added", "candidates")
    }
    explored = part["explorer"]
    is_edge, given = np.array(explored["probability"]) >= 0.5, np.array(explored["given"], dtype=bool)
    assert ((given & is_edge).sum(), (given & ~is_edge).sum()) == (changes.kept, changes.dropped)


def test_probabilities_next_to_the_threshold_are_not_rounded_over_it(run):
    almost = pd.DataFrame({"source": [0, 1], "target": [1, 2], "given": True, "probability": [0.49999, 0.5]})
    almost["learned"] = [False, True]
    assert explorer.explorer_of([(run, almost, None)])[1][0]["probability"] == [0.499, 0.5]


def test_every_part_is_there(run, content):
    (part,), (graph,) = content["runs"], content["graphs"]
    assert [name for name, value in part.items() if isinstance(value, dict) and "missing" in value] == []
    assert part["confusion"]["counts"] == run.confusion_matrix().tolist()
    assert [curve["chosen"] for curve in part["curves"]["curves"]] == [[r.best_epoch, r.val] for r in run.records]
    assert part["audit"]["suspicious"][0]["source"] == run.audit().edges["source"][0]
    assert (len(graph["ids"]), graph["nodes"]) == (24, 24)
    table = run.predictions()
    seen = [place for place, unseen in enumerate(part["explorer"]["unseen"]) if unseen]
    assert seen
    for place in seen:
        assert part["explorer"]["prediction"][place] == table["out_of_fold"][place]
        assert part["explorer"]["confidence"][place] == pytest.approx(table["out_of_fold_probability"][place], abs=1e-4)


def test_matrices_of_classes(run, content):
    structure, edges = content["runs"][0]["structure"], gm.measures.undirected_edges(run.data)
    y = run.data.y[edges]
    before = structure["all"]["before"]
    assert before["edges"][0][0] == int(((y[0] == 0) & (y[1] == 0)).sum())
    assert (
        before["edges"][0][1]
        == before["edges"][1][0]
        == int((y.sort(0).values == torch.tensor([[0], [1]])).all(0).sum())
    )
    assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in before["neighbors"])
    counts = [
        sum(
            (~run.data.train_mask[edge, record.split]).all().item() and (run.data.y[edge] == 0).all().item()
            for edge in edges.T
        )
        for record in run.records
    ]
    assert structure["unseen"]["before"]["edges"][0][0] == pytest.approx(np.mean(counts), abs=1e-3)


def test_the_runs_that_a_run_is_compared_with(tmp_path):
    data = small_data(splits=3)
    ours = quick(data, "gumbel-mpnn", runs=tmp_path)
    (own,), absent = page_content([ours])["runs"][0]["table"].values()
    assert (own["role"], len(own["values"])) == ("this run", 3)
    assert absent == ["its backbone", "best plain model", "control, edges not learned"]
    plain = quick(data, "gcn", runs=tmp_path)
    better = quick(data, "sage", runs=tmp_path, experiment="other")
    quick(data, "mlp", runs=tmp_path, splits=[0])  # not on all splits
    longer = {"model": {"hidden_channels": 32}, "train": {"lr": 0.01, "epochs": 60}}
    trial = quick(data, "sage", runs=tmp_path, experiment="tune", settings=longer)
    quick(data, "frozen", runs=tmp_path, settings={"train": {"epochs": 1}})  # other settings
    assert page_content([ours])["runs"][0]["table"]["absent"] == ["control, edges not learned"]
    frozen = quick(data, "frozen", runs=tmp_path)
    rows, absent = page_content([ours])["runs"][0]["table"].values()
    assert absent == []
    best = max((plain, better), key=lambda run: run.val.mean)
    assert trial.val.mean > best.val.mean  # but the trials of a search do not count
    by_role = {row["role"]: row for row in rows}
    assert by_role["control, edges not learned"]["test"] == frozen.test.mean
    assert next(row for role, row in by_role.items() if "backbone" in role)["test"] == plain.test.mean
    assert next(row for role, row in by_role.items() if "best plain" in role)["test"] == best.test.mean
    gain = by_role["control, edges not learned"]["gain"]
    assert gain["mean"] == pytest.approx(ours.test.mean - frozen.test.mean)
    assert gain["interval"][0] <= gain["mean"] <= gain["interval"][1]


@pytest.mark.parametrize("wary", [False, True])
def test_auto_with_its_ladder_and_its_control(tmp_path, wary):
    short = {"runs": tmp_path, "device": "cpu", "progress": False}
    options = {"train": {"epochs": 2}, "model": {"wary": wary}}
    run = gm.fit(small_data(splits=3), "auto", settings=options, **short)
    part = page_content([run])["runs"][0]
    assert part["choice"]["chosen"] == run.choice.chosen
    assert part["choice"]["sentence"] == run.choice.sentence()
    assert part["table"]["absent"] == ["control, edges not learned"]
    frozen = {**options, "model": {"wary": wary, "learned": "frozen"}}
    control = gm.fit(small_data(splits=3), "auto", settings=frozen, **short)
    part = page_content([gm.load_run(run.folder.path, data=small_data(splits=3))])["runs"][0]
    assert part["table"]["absent"] == []
    row = next(row for row in part["table"]["rows"] if row["role"].endswith("control, edges not learned"))
    assert row["test"] == control.test.mean


def test_a_part_whose_files_are_gone_says_so_and_the_others_stay(tmp_path):
    run = quick(small_data(splits=3), "gumbel-mpnn", runs=tmp_path)
    for model in run.folder.path.glob("*/model.safetensors"):
        model.unlink()
    part = page_content([run])["runs"][0]
    assert "model.safetensors any more" in part["confusion"]["missing"]
    assert "model.safetensors any more" in part["audit"]["missing"]
    assert part["structure"]["counts"]["kept"] > 0
    assert set(part["explorer"]["prediction"]) == {-1}
    for graph in run.folder.path.glob("*/graph.safetensors"):
        graph.unlink()
    assert "graph.safetensors any more" in page_content([run])["runs"][0]["explorer"]["missing"]
    alone = page_content([gm.load_run(run.folder.path)])
    assert "are not known" in alone["runs"][0]["explorer"]["missing"]
    assert alone["graphs"] == []
    assert len(alone["runs"][0]["table"]["absent"]) == 3
    assert len(alone["runs"][0]["curves"]["curves"]) == 3


@pytest.mark.parametrize("model", ["gcn", "sdrf"])
def test_models_without_probabilities(model, tmp_path):
    (part,) = page_content([quick(model=model, runs=tmp_path)])["runs"]
    assert not part["explorer"]["learned"]
    assert set(part["explorer"]["probability"]) <= {0.0, 1.0}
    assert part["structure"]["counts"]["dropped"] == part["structure"]["counts"]["added"] == 0 or model == "sdrf"


def test_a_hub_fills_the_page_with_its_neighbors(tmp_path, monkeypatch):
    monkeypatch.setattr(explorer, "MOST_NODES", 50)
    nodes = 90
    data = small_data(nodes=nodes, splits=1)
    data.edge_index = torch.stack([torch.zeros(nodes - 1, dtype=torch.int64), torch.arange(1, nodes)])
    run = quick(data, "gcn", runs=tmp_path)
    (graph,), ((shown,)) = (page_content([run])[name] for name in ("graphs", "runs"))
    assert len(graph["ids"]) == 50
    assert graph["ids"][0] == "0"
    assert shown["explorer"]["degree"][0] == nodes - 1


def test_directed_edges(tmp_path):
    data = small_data()
    run = quick(data, "gumbel-mpnn", runs=tmp_path, overrides=["data.undirected=false"])
    content = page_content([run])
    assert not content["graphs"][0]["undirected"]
    assert content["runs"][0]["structure"]["counts"]["kept"] == run.changes().kept
    explored = content["runs"][0]["explorer"]
    given = {
        pair[:2] for pair in zip(*(explored[name] for name in ("source", "target", "given")), strict=True) if pair[2]
    }
    assert given == {(a, b) for a, b in data.edge_index.T.tolist() if a != b}


def test_many_classes_have_no_matrices(tmp_path):
    run = quick(small_data(nodes=1200, classes=60), "gcn", runs=tmp_path)
    (part,) = page_content([run])["runs"]
    assert "60 classes" in part["confusion"]["missing"]
    assert part["structure"]["all"] is None


def test_runs_on_the_same_data_share_a_graph(run, tmp_path):
    plain, other = quick(small_data(splits=3), "gcn", runs=tmp_path), quick(small_data(seed=1), "gcn", runs=tmp_path)
    content = page_content([run, plain, other])
    assert [part["explorer"]["graph"] for part in content["runs"]] == [0, 0, 1]
    assert len({part["name"] for part in content["runs"]}) == 3


def test_names_cannot_end_the_script_they_are_in(tmp_path):
    data = small_data(splits=3)
    data.node_ids = [*HOSTILE, *(f"n{k}" for k in range(24 - len(HOSTILE)))]
    data.class_names = ["<img src=x onerror=alert(2)>", '"quoted"', "__proto__"]
    quick(data, "gumbel-mpnn", runs=tmp_path / "runs").page(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    (graph,) = content_of(text)["graphs"]
    assert (graph["ids"], graph["classes"]) == (data.node_ids, data.class_names)
    assert text.count("</script>") == 3
    assert "Permission to use, copy, modify" in text  # the licence of D3 goes with it


def test_features_have_the_names_of_their_columns(tmp_path):
    rows = [f"n{k},{k / 8},{'red' if k % 3 else 'blue'},{'cat' if k % 2 else 'dog'}" for k in range(24)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,height,color,kind", *rows]))
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"n{k},n{(k + 2) % 24}\n" for k in range(24)))
    data = gm.from_csv(tmp_path / "nodes.csv", tmp_path / "edges.csv", label="kind")
    run = quick(data, "gcn", runs=tmp_path / "runs", splits=[0])
    features = page_content([run])["graphs"][0]["features"]
    assert features["names"] == ["height", "color: blue", "color: red"]
    assert features["of"][3] == [[0, 0.375], [1, 1.0], [2, 0.0]]


def test_a_large_graph_is_in_the_page_in_part(tmp_path):
    nodes, generator = 20_000, torch.Generator().manual_seed(0)
    y = torch.arange(nodes) % 4
    part = torch.randperm(nodes, generator=generator) % 3
    data = Data(
        x=torch.randn(nodes, 40, generator=generator) + y[:, None],
        y=y,
        edge_index=torch.randint(nodes, (2, 60_000), generator=generator),
        train_mask=part == 0,
        val_mask=part == 1,
        test_mask=part == 2,
    )
    run = quick(data, "gcn", runs=tmp_path / "runs", settings={"model": {"hidden_channels": 4}, "train": {"epochs": 1}})
    path = tmp_path / "page.html"
    write_page([run], path, around=["12345"])
    assert path.stat().st_size < 5_000_000
    (graph,), (shown,) = (content_of(path.read_text())[name] for name in ("graphs", "runs"))
    assert 1000 < len(graph["ids"]) <= MOST_NODES
    assert len(shown["explorer"]["source"]) <= MOST_PAIRS
    assert graph["nodes"] == nodes
    here = {str(node) for node in data.edge_index[:, (data.edge_index == 12345).any(0)].flatten().tolist()}
    first = shown["audit"]["suspicious"][0]
    assert {*here, str(first["source"]), str(first["target"])} <= set(graph["ids"])
    place, wanted = graph["ids"].index("12345"), gm.measures.undirected_edges(data)
    degree = gm.measures.node_degrees(data)
    assert shown["explorer"]["degree"] == [int(degree[int(name)]) for name in graph["ids"]]
    ends = [shown["explorer"][end] for end in ("source", "target")]
    assert sum(end.count(place) for end in ends) == int((wanted == 12345).sum())  # all of its neighbors
    with pytest.raises(gm.UserError, match="there is no node 'nobody'"):
        write_page([run], path, around=["nobody"])


def test_files_that_cannot_be_a_page(run, tmp_path):
    with pytest.raises(gm.UserError, match=r"ends in \.html"):
        run.page(tmp_path / "page.pdf")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(gm.UserError, match=r"ends in \.html"):
        run.page(tmp_path / "folder.html")
    with pytest.raises(gm.UserError, match="at least one run"):
        write_page([], tmp_path / "page.html")
