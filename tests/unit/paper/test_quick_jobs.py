"""`reproduce --quick`: no job of any table is trained for long, whatever settings the job itself has."""

import pytest

from gumbel_mpnn.paper import tables
from gumbel_mpnn.paper.readings import TrainingReadings
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.paper.work import spec_of
from gumbel_mpnn.runs.auto import AutoSpec

QUICK = Request(quick=True, seeds=1)
FEW = 5


def specs_of(job, request):
    spec = spec_of(job, request)
    return [of for _, of in spec.rungs.values()] if isinstance(spec, AutoSpec) else [spec]


def training_of(job):
    return tuple(each for each in job.overrides if each.startswith("train."))


@pytest.mark.parametrize("name", tables.experiments)
def test_no_job_trains_long_or_often(name):
    """Those of `--quick` alone, and those that `--only` selects among all."""
    experiment = tables.experiments[name]
    jobs = (*tables.requested_jobs(experiment, QUICK), *experiment.plan())
    for job in {(job.model, job.preset, job.seeds, training_of(job)): job for job in jobs}.values():
        for spec in specs_of(job, QUICK):
            assert spec.settings.train.epochs <= FEW, job
            assert spec.seeds == (0,), job


def test_lengths_stay_apart_though_they_are_all_short():
    jobs = tables.requested_jobs(TrainingReadings(), QUICK)
    assert len(set(jobs)) == len(jobs)
    rows = TrainingReadings().collect(dict.fromkeys(jobs))
    assert {row["reading"] for row in rows} == {"100 epochs", "200 epochs", "400 epochs", "1000 epochs"}


def test_the_user_decides_how_long():
    request = Request(quick=True, seeds=1, overrides=("train.epochs=7",))
    for job in tables.requested_jobs(TrainingReadings(), request):
        assert [spec.settings.train.epochs for spec in specs_of(job, request)] == [7]
