"""Processes that train beside the command: real ones, on a data set that is generated."""

import multiprocessing
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gumbel_mpnn._util import locks
from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.data import specs
from gumbel_mpnn.paper import Experiment, Job, Request, consistency, reproduce, tables, workers
from gumbel_mpnn.paper.tables import requested_experiment, requested_jobs
from gumbel_mpnn.paper.work import estimated_seconds, longest_first, run_jobs
from gumbel_mpnn.paper.workers import shared_jobs, start_workers
from gumbel_mpnn.training.trainer import Trainer
from helpers import generated, small_data

OVERRIDES = ("train.epochs=1", "model.hidden_channels=4")
ASKED = {
    "only": ("bottleneck-10", "gcn", "gumbel-mpnn"),
    "splits": (0,),
    "seeds": 1,
    "overrides": OVERRIDES,
    "device": "cpu",
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def records():
    return sorted(Path("runs").rglob("record.json"))


def jobs_of(request):
    return requested_jobs(requested_experiment("bottleneck", request), request)


@pytest.fixture
def in_this_process():
    """Call a worker's work here, without what is done to its process."""
    return workers.assist


def test_they_train_what_is_asked_for_and_end_with_the_block(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    request, threads = Request(**ASKED, workers=2), torch.get_num_threads()
    wanted = len(jobs_of(request))
    with start_workers(["bottleneck"], request):
        (worker,) = multiprocessing.active_children()
        while worker.is_alive() and len(records()) < wanted:
            time.sleep(0.05)
        assert len(records()) == wanted > 0
        assert torch.get_num_threads() == 1
    assert not worker.is_alive()
    assert torch.get_num_threads() == threads


def test_they_end_where_the_command_is_told_to(monkeypatch):
    """As by `timeout` or a scheduler of jobs, which send SIGTERM: nobody goes on in vain."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    before, children = signal.getsignal(signal.SIGTERM), []

    def command():
        with start_workers(["bottleneck"], Request(**ASKED, workers=2)):
            children.extend(multiprocessing.active_children())
            os.kill(os.getpid(), signal.SIGTERM)
            pytest.fail("goes on")

    with pytest.raises(KeyboardInterrupt):
        command()
    assert len(children) == 1
    assert not children[0].is_alive()
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_same_rows_as_alone(in_this_process, monkeypatch):
    request = Request(**ASKED, workers=3)
    in_this_process(2, ["bottleneck"], request)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", lambda _: pytest.fail("trained again"))
        helped = reproduce("bottleneck", **ASKED)
    alone = reproduce("bottleneck", **ASKED, runs="alone")
    assert helped.rows == alone.rows


def test_they_take_from_models_what_the_table_needs(in_this_process, monkeypatch, no_training):
    monkeypatch.setitem(specs, "cora", generated("cora", small_data))
    request = Request(**{**ASKED, "only": ("cora",)}, workers=2)
    in_this_process(1, ["degree"], request)
    for name in ("model.safetensors", "graph.npz"):
        for file in Path("runs").rglob(name):
            file.unlink()
    no_training()
    rows = [row for row in reproduce("degree", **{**ASKED, "only": ["cora"]}).rows if row["graph"] == "learned"]
    assert len(rows) == 4
    for row in rows:
        assert row["n"] == 1
        assert row["degree_mean"] >= 0
        assert row["expected"] > 0


def test_they_measure_the_given_graph_too(in_this_process, monkeypatch, no_training):
    monkeypatch.setitem(specs, "cora", generated("cora", small_data))
    only = ("cora", "tuned")
    in_this_process(1, ["consistency"], Request(**{**ASKED, "only": only}, workers=2))
    no_training()
    monkeypatch.setattr(consistency, "decompose", lambda *_, **__: pytest.fail("measured again"))
    given, learned = reproduce("consistency", **{**ASKED, "only": only}).rows
    assert given["graph"] == "given"
    assert given["clusters"] >= 1 <= learned["clusters"]


@pytest.fixture
def begun(monkeypatch):
    """The jobs that a worker begins, of which none is done."""
    jobs = []
    monkeypatch.setattr(workers, "run_jobs", lambda _, given, *__, **___: jobs.extend(given) or {})
    return jobs


def test_the_longest_first_each_beginning_at_another_job(in_this_process, begun):
    request = Request(**{**ASKED, "only": None}, workers=3)
    in_this_process(0, ["bottleneck"], request)
    first = begun.copy()
    seconds = [estimated_seconds(job, request) for job in first]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] > seconds[-1] > 0
    begun.clear()
    in_this_process(2, ["bottleneck"], request)
    assert begun == first[2:] + first[:2]


def test_what_tables_share_once(in_this_process, begun):
    request = Request(**{**ASKED, "only": None}, workers=2)
    names = ["spectra", "consistency", "degree"]
    in_this_process(1, names, request)
    consistency, degree = (tables.experiments[name].plan() for name in names[1:])  # with all jobs of spectra
    assert len(begun) == len(set(begun)) == len(consistency) + len(degree)
    assert {job.experiment for job in begun} == {"rewiring", "paper", "degree"}
    sharing = shared_jobs(names, request)[Job("cora", "gumbel-mpnn", "tuned", "rewiring")]
    assert [experiment.name for experiment in sharing] == ["spectra", "consistency"]


def test_a_job_that_fails_does_not_end_a_worker(in_this_process, monkeypatch):
    tried = []

    def fail(_, jobs, *__, **___):
        tried.extend(jobs)
        raise RuntimeError

    monkeypatch.setattr(workers, "run_jobs", fail)
    request = Request(**ASKED, workers=2)
    in_this_process(1, ["bottleneck"], request)
    assert len(tried) == len(jobs_of(request))


def test_what_is_not_there_is_told_before_anybody_starts(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: pytest.fail("started"))
    request = Request(**{**ASKED, "only": ("nowhere",)}, workers=2)
    with pytest.raises(UserError, match="nowhere"), start_workers(["bottleneck"], request):
        pass


@pytest.mark.parametrize(("cores", "workers"), [(64, 3), (1, 1)])
def test_never_more_than_jobs_or_cores(monkeypatch, cores, workers):
    started = []

    class Worker(SimpleNamespace):
        pid = 1
        start = terminate = join = lambda _: None

    def start(**arguments):
        started.append(arguments["args"][2])
        return Worker()

    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: SimpleNamespace(Process=start))
    monkeypatch.setattr("gumbel_mpnn.runs.workers.share_cores", lambda _: None)
    with start_workers(["bottleneck"], Request(**ASKED, workers=500)) as request:
        assert started == [workers] * (workers - 1)
        assert request.workers == workers


def test_they_need_locks(monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    with pytest.raises(UserError, match="use one worker"), start_workers([], Request(**ASKED, workers=2)):
        pass


def test_one_worker_is_this_process():
    with start_workers(["bottleneck"], Request(**ASKED)):
        assert multiprocessing.active_children() == []


class Plain(Experiment):
    """A table of test results."""

    name, title, headings = "plain", "Plain", {}

    def plan(self):
        return [Job(name, "gcn", "", experiment="shared") for name in ("one", "two")]

    def collect(self, results):
        return [{"dataset": job.dataset, "test": run.test.mean} for job, run in results.items()]


class Measured(Plain):
    """A table that takes something from the models of the same jobs; it writes down how often."""

    name, from_models = "measured", "measured-1"

    def measure(self, run):
        with Path("measured").open("a") as file:
            file.write(f"{run.settings.dataset}\n")
        return [tensor.numel() for tensor in run.folder.state(run.records[0].replica).values()]

    def collect(self, results):
        return [{"dataset": job.dataset, "sizes": str(self.taken(run))} for job, run in results.items()]


@pytest.fixture
def two_tables(monkeypatch):
    for name in ("one", "two"):
        monkeypatch.setitem(specs, name, generated(name, small_data))
    monkeypatch.setattr(tables, "experiments", {table.name: table for table in (Plain(), Measured())})
    monkeypatch.setattr(tables, "analyses", {})


def all_tables(**options):
    return reproduce("all", splits=[0], seeds=1, overrides=OVERRIDES, device="cpu", **options)


def test_models_that_a_later_table_needs_are_made_for_the_first(two_tables):
    """Records without models: each run is trained once, and both tables show the same one."""
    reproduce("plain", splits=[0], seeds=1, overrides=OVERRIDES, device="cpu")
    for model in Path("runs").rglob("model.safetensors"):
        model.unlink()
    first, names = [record.stat().st_mtime_ns for record in records()], []

    class Watch:
        prepare = rung = resume = progress = wait = end = lambda *_: None

        def begin(self, settings, *_):
            self.name = settings.dataset

        def group(self, *_):
            names.append(self.name)

    with pytest.warns(UserWarning, match="trained again"):
        done = all_tables(monitor=Watch())
    assert not done.failed
    assert names == ["one", "two"]
    again = [record.stat().st_mtime_ns for record in records()]
    assert len(again) == 2
    assert not set(again) & set(first)
    after_first_table = Path("results/plain.md").stat().st_mtime_ns
    assert max(again) < after_first_table


class PartlyMeasured(Measured):
    """A table that takes nothing from the models of one job."""

    def needed_from(self, job):
        return self.from_models if job.dataset == "one" else ""

    def collect(self, results):
        return super().collect({job: run for job, run in results.items() if self.needed_from(job)})


def test_models_of_jobs_that_need_none_are_not_made_again(two_tables, monkeypatch):
    monkeypatch.setitem(tables.experiments, "measured", PartlyMeasured())
    reproduce("plain", splits=[0], seeds=1, overrides=OVERRIDES, device="cpu")
    for model in Path("runs").rglob("model.safetensors"):
        model.unlink()
    with pytest.warns(UserWarning, match="trained again"):
        reproduce("measured", splits=[0], seeds=1, overrides=OVERRIDES, device="cpu")
    assert Path("measured").read_text().split() == ["one"]
    assert [path.parts[2] for path in Path("runs").rglob("model.safetensors")] == ["one"]


def test_a_worker_measures_what_each_table_needs(two_tables, in_this_process, no_training):
    request = Request(splits=(0,), seeds=1, overrides=OVERRIDES, device="cpu", workers=2)
    in_this_process(1, ["plain", "measured"], request)
    assert sorted(Path("measured").read_text().split()) == ["one", "two"]
    no_training()
    assert not all_tables().failed
    assert len(Path("measured").read_text().split()) == 2


def test_what_is_measured_elsewhere_is_left_to_others(two_tables, in_this_process):
    request = Request(splits=(0,), seeds=1, overrides=OVERRIDES, device="cpu", workers=2)
    in_this_process(1, ["plain"], request)
    (job, *_), table = Measured().plan(), Measured()
    run = run_jobs(table, [job], request)[job]
    path = run.folder.figures(table.from_models, run.records)
    with locks.alone(path.with_name(f".{path.name}.lock")):
        in_this_process(1, ["plain", "measured"], request)
        assert Path("measured").read_text().split() == ["two"]
    in_this_process(1, ["plain", "measured"], request)
    assert Path("measured").read_text().split() == ["two", "one"]


@pytest.mark.parametrize("name", list(tables.experiments))
def test_every_job_is_known_again_and_its_time_is_estimated(name):
    request, jobs = Request(device="cpu"), tables.experiments[name].plan()
    assert set(jobs) == set(tables.experiments[name].plan())  # by which tables know the jobs that they share
    distinct = {(job.dataset, job.model): job for job in jobs}.values()
    assert all(estimated_seconds(job, request) > 0 for job in distinct)


def test_more_work_is_estimated_to_take_longer():
    request = Request(device="cpu", seeds=1)
    jobs = [
        Job("nowhere", "gcn", ""),
        Job("cora", "gcn", "", overrides=("train.epochs=10",)),
        Job("cora", "gcn", ""),
        Job("cora", "gumbel-mpnn", ""),
        Job("tolokers", "gumbel-mpnn", ""),
        Job("tolokers", "auto", ""),
    ]
    assert estimated_seconds(jobs[0], request) == 0
    assert longest_first(jobs, request) == jobs[::-1]
    assert estimated_seconds(jobs[2], Request(device="cpu", seeds=3)) > estimated_seconds(jobs[2], request)


def test_all_has_the_same_rows_with_several_processes(monkeypatch):
    """Real processes, on a table whose data are generated."""
    monkeypatch.setattr(tables, "experiments", {"bottleneck": tables.experiments["bottleneck"]})
    monkeypatch.setattr(tables, "analyses", {})
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    options = {"quick": True, "splits": [0], "overrides": OVERRIDES, "device": "cpu"}
    for count in (1, 2):
        done = reproduce("all", **options, workers=count, runs=f"runs-{count}", out=f"pages-{count}")
        assert not done.failed
    alone, together = (Path(f"pages-{count}/bottleneck.csv").read_text() for count in (1, 2))
    assert alone == together
    assert len(alone.splitlines()) > 2
