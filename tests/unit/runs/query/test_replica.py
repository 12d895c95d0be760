"""One run of a setting: its name, and its random stream."""

import pytest

from gumbel_mpnn.runs.query.index import RunIndex
from gumbel_mpnn.settings import Replica
from quick_fit import quick

NAMES = {"split0-seed0": Replica(0, 0), "split12-seed345": Replica(12, 345), "split1-seed-2": Replica(1, -2)}


@pytest.mark.parametrize("name", NAMES)
def test_its_name_reads_back(name):
    assert str(NAMES[name]) == name
    assert Replica.parse(name) == NAMES[name]


@pytest.mark.parametrize("name", ["", "split0", "0-seed0", "split0-seed", "split0-seed0.tmp", "split-1-seed0"])
def test_another_name_is_refused(name):
    with pytest.raises(ValueError, match="is not the name of a replica"):
        Replica.parse(name)


def test_they_sort_by_split():
    assert sorted(NAMES.values()) == [Replica(0, 0), Replica(1, -2), Replica(12, 345)]


def test_every_split_and_seed_has_a_stream_of_its_own():
    replicas = [Replica(split, seed) for split in range(100) for seed in range(10)]
    assert len({replica.stream_seed for replica in replicas}) == len(replicas)


def test_the_index_knows_every_name_that_a_run_can_have(tmp_path):
    run = quick(splits=[1], seeds=[-2, 3], runs=tmp_path)
    assert [record.replica for record in run.records] == [Replica(1, -2), Replica(1, 3)]
    index = RunIndex(tmp_path)
    assert [(found["split"], found["seed"]) for found in index.runs(index.settings())] == [(1, -2), (1, 3)]
