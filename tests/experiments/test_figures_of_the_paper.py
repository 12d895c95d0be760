"""Temperature, noise, synthetic neighborhoods and the generated tasks."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from made_runs import SHORT, fit, scoring, shifted

from experiments import Job
from experiments.paper import long_range, noise
from experiments.paper.components import Components
from experiments.paper.long_range import LongRange
from experiments.paper.noise import Noise, scores_with_noise
from experiments.paper.temperature import Temperature
from experiments.training import Options, train
from gumbel_mpnn.data import add_noise_edges, leaf_count, specs
from helpers import generated, small_data
from quick_fit import resolved


def settings_of(job):
    return resolved(job.dataset, job.model, preset=job.preset, overrides=job.overrides)


class TestTemperature:
    @pytest.fixture
    def learned(self, rewired, tmp_path, monkeypatch):
        """Runs whose learned graphs have these probabilities of given edges and candidates."""

        def make(*graphs):
            pairs = [
                SimpleNamespace(edge_probability=torch.tensor(p), edge_origin=torch.tensor(given))
                for p, given in graphs
            ]
            alone = replace(rewired, records=rewired.records[: len(graphs)])
            monkeypatch.setattr(type(rewired), "graphs", lambda self, threshold: pairs)
            monkeypatch.setattr(type(rewired), "folders", [str(tmp_path / "split0-seed0")])
            return alone

        return make

    def test_how_far_the_graph_moved(self, learned):
        """Two runs on two given edges and a candidate: the first keeps one edge and adds one, the second keeps both."""
        given = [True, True, False]
        made = learned(([0.9, 0.4, 0.5], given), ([0.9, 0.6, 0.4], given))
        (row,) = Temperature().collect({Temperature().plan()[0]: made})
        assert (row["kept"], row["added"]) == (75, 50)


def test_rewired_runs_are_paired_with_plain_ones_of_the_same_k_and_settings(run):
    jobs = Components().plan()[:8]
    shifts = (0.0, 0.01, 0.2, 0.3, 0.22, 0.4, 0.1, 0.05)
    rows = Components().collect({job: shifted(run, shift) for job, shift in zip(jobs, shifts, strict=True)})
    differences = [1, None, 2, -8, None, None, -5, None]
    assert [row["difference"] for row in rows] == [each and pytest.approx(each) for each in differences]
    assert [row["verdict"] for row in rows] == ["better", None, "better", "worse", None, None, "worse", None]
    assert [row["settings"] for row in rows[:6]] == [
        "tuned",
        "tuned",
        "the paper's",
        "the paper's for Gumbel-MPNN",
        "the paper's",
        "the paper's, no candidates",
    ]
    lines = Components().shown(rows).splitlines()
    assert lines[2].startswith("| neighborhoods per class | GCN, tuned | Gumbel-MPNN, tuned | GCN, the paper's |")
    assert lines[5].startswith("| 2 | **63.50**±0.87 | 58.50±0.87 | – |")


class TestNoise:
    def test_what_is_kept_is_taken_run_by_run(self, run, monkeypatch):
        """Records of 0.4 and 0.8, scores of 0.2 and 0.8: a half and all of it."""
        two = scoring(replace(run, records=run.records[:2]), [0.4, 0.8])
        monkeypatch.setattr(noise, "COUNTS", (0, 7))
        monkeypatch.setattr(type(run), "scores", lambda _, data, records: [0.2 + 0.6 * r.split for r in records])
        clean, noisy = Noise().collect({Job("cora", "gcn"): two})
        assert (clean["edges"], clean["test"], clean["kept"]) == (0, pytest.approx(60), pytest.approx(100))
        assert (noisy["edges"], noisy["test"], noisy["kept"]) == (7, pytest.approx(50), pytest.approx(75))
        assert (noisy["stderr"], noisy["kept_stderr"], noisy["n"]) == (pytest.approx(30), pytest.approx(25), 2)
        assert "| GCN | tuned |  | 60.00±20.00 | 50.00±30.00 |" in Noise().shown([clean, noisy])

    def test_each_split_has_noise_at_its_own_nodes_and_each_run_its_own_score(self, tmp_path):
        run = fit(small_data(60), seeds=2, runs=tmp_path)
        for part in ("test", "val"):
            found = list(scores_with_noise(run, 40, part))
            for record, score in zip(run.records, found, strict=True):
                mask = run.data[f"{part}_mask"][:, record.split]
                noisy = add_noise_edges(run.data, 40, seed=record.split, nodes=mask)
                right = replace(run, records=(record,)).predict_proba(noisy).argmax(-1) == run.data.y
                assert score == pytest.approx(float(right[mask].double().mean()))
        assert list(scores_with_noise(run, 0, "val")) == pytest.approx([record.val for record in run.records])


class TestLongRange:
    @pytest.fixture
    def results(self, tmp_path, monkeypatch):
        monkeypatch.setitem(specs, "leaf-count", generated("leaf-count", lambda: leaf_count(3, num_trees=256)))
        jobs = [job for job in LongRange().plan() if job.dataset == "leaf-count"]
        overrides = (*SHORT, "rewiring.add=0.9")
        plain = Options(splits=(0,), seeds=1, overrides=SHORT, runs=tmp_path, device="cpu", quiet=True)
        results = train(LongRange(), jobs[:3], plain)
        return results | train(LongRange(), jobs[3:], replace(plain, overrides=overrides))

    def test_the_tree_that_is_drawn_is_a_test_tree_with_the_edges_of_the_first_run(self, results, monkeypatch):
        drawn = []
        monkeypatch.setattr(long_range, "draw_rewired_tree", lambda tree, pictures: drawn.append(tree))
        assert LongRange().draw([], results, [])
        (tree,), run = drawn, list(results.values())[-1]
        root = int(run.data.test_mask[:, 0].nonzero()[0])
        assert (len(tree.parent), tree.parent[:4]) == (15, [-1, 0, 1, 2])
        assert sum(bit == 1 for bit in tree.bits) == int(run.data.class_names[int(run.data.y[root])])
        learned = run.rewire().edge_index.T.tolist()
        inside = {(i - root, j - root) for i, j in learned if root <= i < j < root + 15}
        assert {tuple(edge) for edge in tree.edges} == inside
        assert tree.edges_by_kind()["added"]
