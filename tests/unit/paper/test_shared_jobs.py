"""Jobs that another process is at are left for the end."""

from gumbel_mpnn._util.errors import MissingDataError
from gumbel_mpnn.paper import Job, Request, base, run_jobs
from gumbel_mpnn.paper.backbones import Backbones
from gumbel_mpnn.runs import BusyError


def test_what_is_busy_comes_last_and_is_waited_for(tmp_path, monkeypatch):
    calls = []

    def fit(dataset, model, *, wait, **_):
        calls.append((dataset, wait))
        if dataset == "busy" and not wait:
            raise BusyError("another process is training it")
        if dataset == "missing":
            raise MissingDataError("no files")
        return f"the runs on {dataset}"

    monkeypatch.setattr(base, "fit", fit)
    jobs = [Job(name, "gcn") for name in ("busy", "missing", "free")]
    results = run_jobs(Backbones(), jobs, Request(seeds=1, runs=tmp_path))
    assert calls == [("busy", False), ("missing", False), ("free", False), ("busy", True)]
    assert list(results.items()) == list(zip(jobs, ["the runs on busy", None, "the runs on free"], strict=True))
