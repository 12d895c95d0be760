"""Measures, mixtures, the figure of two classes, and models trained on components."""

from dataclasses import replace

import pytest
import torch
from made_runs import EVEN, fit, scoring
from torch_geometric.data import Data

from experiments import Job, published
from experiments.paper import measures, mixtures, neighborhoods
from experiments.paper.decomposition import ByComponents, Decomposition
from experiments.paper.measures import Measures
from experiments.paper.mixtures import Mixtures
from experiments.paper.neighborhoods import Neighborhoods, typical_pair
from gumbel_mpnn.data import specs
from helpers import both_ways, changed, edges, small_data

COLUMNS = list(measures.TOLERANCE)


class TestMeasures:
    def test_every_number_of_the_paper_is_of_a_row_and_a_column(self):
        assert set(measures.DATASETS) <= set(specs)
        paper = published("measures")
        assert set(paper) == set(measures.DATASETS) - {"squirrel", "chameleon"}
        for name, values in paper.items():
            assert set(values) == {*COLUMNS}
            assert values["num_nodes"] == specs[name].num_nodes

    def test_ours_the_papers_and_the_difference(self, monkeypatch):
        monkeypatch.setattr(measures, "load", lambda name, **_: small_data())
        monkeypatch.setattr(measures, "published", lambda _: {})
        (ours,) = Measures().rows("cora")
        exact = {name: ours[name] for name in COLUMNS}
        paper = {**exact, "std_per_class": exact["std_per_class"] - 0.0002, "degree_max": exact["degree_max"] + 1}
        paper |= {"edge_homophily": exact["edge_homophily"] + 0.02}
        monkeypatch.setattr(measures, "published", lambda _: {"cora": paper})
        found = Measures().rows("cora")
        assert [row["source"] for row in found] == ["ours", "paper", "difference"]
        assert {name: found[1][name] for name in COLUMNS} == paper
        assert found[2]["std_per_class"] == pytest.approx(0.0002)
        assert (found[2]["degree_max"], found[2]["num_edges"]) == (-1, 0)
        assert found[2]["apart"] == "edge homophily, max degree"
        line = Measures().shown(found).splitlines()[-1]
        assert f"| **{exact['degree_max']}** ({paper['degree_max']}) |" in line
        assert line.count("(") == 2


def test_mixtures_of_classes_of_components_and_the_papers(monkeypatch):
    def load(dataset, features=True, directed=False):
        asked.append((dataset, features, directed))
        return changed(small_data(nodes=60), x=None, num_nodes=60)

    asked = []
    monkeypatch.setattr(mixtures, "load", load)
    rows = Mixtures().rows("cora")
    assert rows[0]["labels"] == "classes"
    assert (rows[0]["components"], rows[0]["bic"]) == (3, None)
    for row in rows[1:-1]:
        assert row["components"] == sum(map(int, row["per_class"].split()))
    assert (rows[-1]["labels"], rows[-1]["components"], rows[-1]["bic"]) == ("components, paper", 47, None)
    assert asked == [("cora", False, False)]
    assert set(published("mixtures")) <= set(Mixtures().datasets)


def stars() -> Data:
    """Class 0: 40 nodes with three neighbors of class 1 each. Class 1: half have neighbors of class 2 only.

    So all neighborhoods of class 0 are alike, and class 1 has two kinds.
    """
    pairs = [(node, 40 + (node + shift) % 20) for node in range(40) for shift in range(3)]
    pairs += [(60 + node, 80 + (node + shift) % 20) for node in range(20) for shift in range(3)]
    y = torch.tensor([0] * 40 + [1] * 40 + [2] * 20)
    return Data(edge_index=both_ways(edges(*pairs)), y=y, num_nodes=100)


class TestNeighborhoods:
    def test_a_class_with_two_equal_kinds_has_two_effective_components(self, monkeypatch):
        monkeypatch.setattr(neighborhoods, "load", lambda dataset, features=True: stars())
        rows = Neighborhoods().rows("cora")
        assert [(row["label"], row["nodes"], row["shown"]) for row in rows] == [
            ("0", 40, "fewest"),
            ("1", 40, "most"),
            ("2", 20, ""),
        ]
        assert [row["effective"] for row in rows] == pytest.approx([1, 2, 1], abs=1e-6)
        # Half of class 1 has (1, 0, 0), half (0, 0, 1): a deviation of ½ √(40/39) in two of three dimensions.
        assert [row["std"] for row in rows] == pytest.approx([0, (40 / 39) ** 0.5 / 3, 0])

    def test_a_typical_pair_is_as_far_apart_as_usual(self):
        """Four members on a line at 0, 1, 2 and 5: var 14/3, so √(28/3) = 3.06 is usual, and 2 and 5 are 3 apart."""
        rows = torch.tensor([[0.0], [1], [9], [2], [5]])
        members = torch.tensor([True, True, False, True, True])
        assert typical_pair(rows, members, torch.full((5,), 4)) == (3, 4)

    def test_missing_files(self, no_data_sets):
        (row,) = rows = Neighborhoods().rows("cora")
        assert (row["label"], row["nodes"]) == ("no data", None)
        assert not Neighborhoods().draw(rows, {}, [])


class TestDecomposition:
    def test_metrics_are_those_of_classes(self, small, tmp_path):
        """The probability of a class is the sum over its components."""
        small("cora")
        run = fit("cora", transform=ByComponents("all"), runs=tmp_path)
        found = Decomposition().measure(run)
        for record, test in zip(run.records, found["test"], strict=True):
            probability = replace(run, records=(record,)).predict_proba()
            classes = run.data.class_of_component
            summed = torch.stack([probability[:, classes == label].sum(1) for label in range(3)], dim=1)
            mask = run.data.test_mask[:, record.split]
            assert test == pytest.approx(float((summed.argmax(1) == run.data.classes)[mask].double().mean()))

    def test_splits_are_joined_and_compared_run_by_run(self, run, monkeypatch):
        """All eight splits are better: p is 2 / 2^8, times the two data sets."""
        plain = scoring(run, EVEN, 0.5)
        better = scoring(run, [value + 0.1 for value in EVEN], 0.5)
        monkeypatch.setattr(Decomposition, "_on_classes", lambda self, run: run)
        results = {}
        for dataset in ("cora", "actor"):
            results[Job(dataset, "gcn", experiment="backbones")] = plain
            for split in range(8):
                alone = replace(better, records=(better.records[split],))
                results[Job(dataset, "gcn", transform=ByComponents("training", split), split=split)] = alone
            results[Job(dataset, "gcn", transform=ByComponents("all"))] = None
        rows = Decomposition().collect(results)
        assert [row["labels"] for row in rows[:3]] == ["classes", "components", "components (oracle)"]
        assert [row["n"] for row in rows[:3]] == [8, 8, None]
        assert [row["verdict"] for row in rows[:3]] == [None, "better", "no data"]
        assert (rows[1]["difference"], rows[1]["p"]) == (pytest.approx(10), pytest.approx(2 / 2**7))
        assert "| cora | GCN | 53.50 | **63.50** | – |" in Decomposition().shown(rows)
