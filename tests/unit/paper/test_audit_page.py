"""`reproduce audit`: edges that are added, and how they are counted as found."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gumbel_mpnn.measures import undirected_edges
from gumbel_mpnn.paper.audit import AuditTable, WithRandomEdges, _auc
from gumbel_mpnn.paper.base import Job
from gumbel_mpnn.runs.choice import Choice
from helpers import small_data
from quick_fit import quick


class TestRandomEdges:
    def test_a_tenth_more_edges_that_were_not_there(self):
        data = small_data(60)
        noisy = WithRandomEdges()(data)
        before, after = undirected_edges(data), undirected_edges(noisy)
        assert after.shape[1] == before.shape[1] + round(0.1 * before.shape[1])
        assert int(noisy.edge_is_noise.sum()) == 2 * round(0.1 * before.shape[1])
        old = {tuple(pair) for pair in before.T.tolist()}
        assert old.isdisjoint({tuple(sorted(pair)) for pair in noisy.edge_index[:, noisy.edge_is_noise].T.tolist()})

    def test_the_same_each_time(self):
        first, again = WithRandomEdges()(small_data(60)), WithRandomEdges()(small_data(60))
        assert torch.equal(first.edge_index, again.edge_index)

    def test_transforms_of_one_share_are_equal(self):
        assert WithRandomEdges() == WithRandomEdges(0.1) != WithRandomEdges(0.2)


@pytest.mark.parametrize(
    ("score", "wrong", "expected"),
    [
        ([3, 2, 1, 0], [1, 1, 0, 0], 1.0),
        ([0, 1, 2, 3], [1, 1, 0, 0], 0.0),
        ([1, 1, 1, 1], [1, 0, 0, 0], 0.5),
        ([2, 1, 1, 0], [0, 1, 0, 0], 0.5),
        ([np.nan, 1, 1, 0], [0, 1, 0, 0], None),
        ([2, 1], [0, 0], None),
    ],
)
def test_the_area_by_hand(score, wrong, expected):
    assert _auc(np.array(score, dtype=float), np.array(wrong, dtype=bool)) == expected


def test_a_row():
    job = Job("cora", "gumbel-mpnn", transform=WithRandomEdges())
    run = quick(small_data(60), "gumbel-mpnn", transform=job.transform, seeds=2)
    (row,) = AuditTable().collect({job: run, Job("citeseer", "gcn"): None})
    assert (row["dataset"], row["added"], row["model"], row["n"]) == ("cora", "random", "gumbel-mpnn", 4)
    assert row["wrong"] == int(run.data.edge_is_noise.sum()) // 2
    assert row["edges"] == undirected_edges(run.data).shape[1]
    assert 0 <= row["auc"] <= 100
    assert 0 <= row["probability"] <= 100
    assert row["stderr"] > 0


def test_auto_has_a_row_for_its_best_plain_rung_too():
    job, plain = Job("cora", "auto", transform=WithRandomEdges()), quick(small_data(60), transform=WithRandomEdges())
    rewired = quick(small_data(60), "gumbel-mpnn", transform=WithRandomEdges())
    choice = Choice("judged-appnp", "gcn", 0.1, 0.1, (), "gumbel-mpnn", ())
    rows = AuditTable().collect({job: replace(rewired, choice=choice, rungs={"gcn": plain, "judged-appnp": rewired})})
    assert [row["model"] for row in rows] == ["best plain: gcn", "auto: judged-appnp"]
    assert rows[0]["probability"] is None


def test_every_data_set_has_auto_and_its_control():
    jobs = AuditTable().plan()
    by_data = {}
    for job in jobs:
        by_data.setdefault((job.dataset, job.overrides), []).append(job.model)
    assert set(map(tuple, by_data.values())) == {("auto", "auto-frozen")}
    assert len(by_data) == 9
