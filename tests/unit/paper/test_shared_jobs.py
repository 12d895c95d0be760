"""Jobs that another process is at are left for the end."""

from gumbel_mpnn.data import specs
from gumbel_mpnn.paper import Job, Request, run_jobs
from gumbel_mpnn.paper.backbones import Backbones
from gumbel_mpnn.runs import Place, RunSpec
from gumbel_mpnn.runs.work_queue import WorkQueue
from helpers import generated, small_data

FAST = ("train.epochs=1", "model.hidden_channels=4")


class Watch:
    """A monitor that writes down what it is told, and lets go of the claim when somebody waits for it."""

    def __init__(self, claim):
        self.claim, self.told = claim, []

    def prepare(self, *_): ...
    def group(self, *_): ...
    def progress(self, *_): ...

    def begin(self, settings, *_):
        self.told.append(f"begin {settings.dataset}")

    def wait(self):
        self.told.append("wait")
        self.claim.__exit__()

    def end(self, run):
        self.told.append(f"end {run.settings.dataset}")


def held(dataset, runs):
    """A claim on all runs of the job on this data set, as another process would have it."""
    workload = RunSpec.of(dataset, "gcn", preset=None, overrides=FAST).read()
    folder = Place(experiment="backbones").folder(workload, runs)
    return WorkQueue(folder).next(workload.replicas, 9)


def test_what_is_busy_comes_last_and_is_waited_for(tmp_path, monkeypatch, no_data_sets):
    for name in ("busy", "free"):
        monkeypatch.setitem(specs, name, generated(name, small_data))
    jobs = [Job(name, "gcn", preset=None) for name in ("busy", "cora", "free")]
    request = Request(seeds=1, runs=tmp_path, root=tmp_path, overrides=FAST, device="cpu")
    watch = Watch(held("busy", tmp_path))
    results = run_jobs(Backbones(), jobs, request, monitor=watch)
    assert watch.told == ["begin free", "end free", "begin busy", "wait", "end busy"]
    assert list(results) == jobs
    assert [run and run.settings.dataset for run in results.values()] == ["busy", None, "free"]


def test_without_waiting_it_is_left_out(tmp_path, monkeypatch):
    for name in ("busy", "free"):
        monkeypatch.setitem(specs, name, generated(name, small_data))
    jobs = [Job(name, "gcn", preset=None) for name in ("busy", "free")]
    request = Request(seeds=1, runs=tmp_path, overrides=FAST, device="cpu")
    with held("busy", tmp_path):
        assert list(run_jobs(Backbones(), jobs, request, wait=False)) == jobs[1:]
