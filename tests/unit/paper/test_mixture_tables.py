"""The tables of components and of models trained on them."""

from dataclasses import replace

import pytest
import torch

from gumbel_mpnn.data import specs
from gumbel_mpnn.paper import Job, analyses, experiments, mixtures, published
from gumbel_mpnn.paper.decomposition import ByComponents, DecompositionTable
from gumbel_mpnn.paper.mixtures import MixturesTable
from gumbel_mpnn.runs import fit
from helpers import changed, small_data
from quick_fit import on_other_data

PAPER = published("mixtures")


def quick_fit(data):
    return fit(data, "mlp", settings={"model": {"hidden_channels": 4}, "train": {"epochs": 1}}, device="cpu")


@pytest.fixture(scope="module")
def run():
    return quick_fit(small_data())


def with_test(run, *values):
    records = zip(run.records, values, strict=True)
    return replace(run, records=tuple(replace(record, test=value, val=0.5) for record, value in records))


class TestPublished:
    def test_values_of_the_papers_tables(self):
        assert PAPER["cora"] == {
            "components": 47,
            "edge_homophily": 0.45,
            "adjusted_homophily": 0.41,
            "label_informativeness": 0.52,
        }
        assert PAPER["squirrel-unfiltered"]["adjusted_homophily"] == -0.04
        assert PAPER["ogbn-arxiv"]["components"] == 377

    def test_twelve_known_data_sets_with_four_numbers_each(self):
        assert set(PAPER) <= set(specs)
        assert len(PAPER) == 12
        assert {frozenset(row) for row in PAPER.values()} == {frozenset(PAPER["cora"])}


class TestMixturesTable:
    @pytest.fixture
    def loaded(self, monkeypatch):
        data = changed(small_data(nodes=60), x=None, num_nodes=60)
        asked = []

        def note(dataset, root=None, features=True, directed=False):
            asked.append((dataset, features, directed))
            return data

        monkeypatch.setattr(mixtures, "load", note)
        return asked

    def test_known_by_its_name_with_the_papers_data_sets_but_one(self):
        assert isinstance(analyses["mixtures"], MixturesTable)
        assert set(PAPER) <= set(MixturesTable.datasets)

    def test_classes_components_and_the_papers(self, loaded):
        rows = MixturesTable().rows("cora")
        assert [row["labels"] for row in rows] == [
            "classes",
            "components, 1e-04",
            "components, 1e-06",
            "components, paper",
        ]
        assert rows[0]["components"] == 3
        assert rows[0]["bic"] is None
        for row in rows[1:3]:
            assert row["components"] == sum(map(int, row["per_class"].split()))
            assert row["fewest"] <= row["most"]
        assert rows[2]["bic"] < rows[1]["bic"]  # the narrower a component may be, the higher its density
        assert (rows[3]["components"], rows[3]["edge_homophily"], rows[3]["bic"]) == (47, 0.45, None)
        assert loaded == [("cora", False, False)]

    def test_edges_with_directions_are_counted_as_listed(self, loaded):
        MixturesTable().rows("chameleon")
        assert loaded == [("chameleon", False, False), ("chameleon", False, True)]

    def test_missing_files(self, tmp_path, no_data_sets):
        assert [row["labels"] for row in MixturesTable().rows("cora", tmp_path)] == ["no data", "components, paper"]

    def test_every_heading_belongs_to_a_column(self, loaded):
        assert set(MixturesTable().headings) <= set(MixturesTable().rows("cora")[0])


class TestDecompositionTable:
    def test_three_trainings_of_three_models(self):
        plan = DecompositionTable().plan()
        assert isinstance(experiments["decomposition"], DecompositionTable)
        assert len(plan) == 10 * 3 * 3
        kinds = [getattr(job.transform, "known", None) for job in plan[:3]]
        assert kinds == [None, "training", "all"]
        assert {job.model for job in plan} == {"gcn", "sage", "gat"}
        assert [job.experiment for job in plan[:3]] == ["backbones", "decomposition", "decomposition"]

    def test_differences_are_taken_run_by_run(self, run):
        finer = on_other_data(run, changed(run.data, class_of=torch.tensor([0, 0, 1, 1, 2])))
        plain, honest, oracle = DecompositionTable().plan()[:3]
        results = {
            plain: with_test(run, 0.5, 0.7),
            honest: with_test(finer, 0.4, 0.8),
            oracle: None,
        }
        rows = DecompositionTable().collect(results)
        assert [row["labels"] for row in rows] == ["classes", "components", "components (oracle)"]
        assert [row["outputs"] for row in rows] == [3, 5, None]
        assert [row["difference"] for row in rows] == [None, pytest.approx(0), None]
        assert [row["verdict"] for row in rows] == [None, "too few splits", "no data"]
        assert (rows[1]["test"], rows[1]["n"]) == (pytest.approx(60), 2)
        assert (rows[2]["test"], rows[2]["n"]) == (None, None)
        assert set(DecompositionTable().headings) <= set(rows[0])

    def test_p_values_are_corrected_for_the_data_sets_of_one_model_and_kind(self, run):
        """All eight splits are better: p is 2 / 2^8, times the two data sets and not the twelve comparisons."""
        records = [replace(run.records[0], split=split) for split in range(8)]
        plain = replace(run, records=tuple(replace(record, test=0.5) for record in records))
        better = replace(run, records=tuple(replace(record, test=0.6 + 0.01 * record.split) for record in records))
        plan = [job for job in DecompositionTable().plan() if job.dataset in ("cora", "actor")]
        rows = DecompositionTable().collect({job: better if job.transform else plain for job in plan})
        assert len(rows) == 2 * 3 * 3
        assert {(row["p"], row["verdict"]) for row in rows if row["labels"] != "classes"} == {(2 / 2**7, "better")}

    def test_components_are_found_once_for_a_data_set(self):
        data = changed(small_data(), name="toy")
        kind = ByComponents("training")
        assert kind(data) is kind(data)
        assert kind(data).train_y.shape == (24, 2)

    def test_the_papers_figures_are_not_needed(self, run):
        (row,) = DecompositionTable().collect({Job("texas", "gcn"): run})
        assert row["labels"] == "classes"
