"""Options that say where runs are trained."""

import pytest
from quick_options import GCN


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cpus-per-task", "2"), "--cpus-per-task is for tasks of Ray: leave it out, or name a cluster with --on"),
        (("--gpus-per-task", "0"), "--gpus-per-task is for tasks of Ray"),
        (("--store", "shared"), "--store is for tasks of Ray"),
        (("--on", "ray", "--workers", "2"), "Ray decides how many tasks run at once"),
        (("--on", "slurm"), "on must be local, ray, ray:auto, ray:HOST:PORT or ray://HOST:PORT, but is 'slurm'"),
    ],
)
@pytest.mark.parametrize("verb", [("train", "demo", *GCN), ("tune", "demo"), ("reproduce", "bottleneck")])
def test_options_that_do_not_fit(command, here, verb, options, message):
    done = command(*verb, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("train", "demo", *GCN, "--workers", "2"),
            "torchrun shares the parts of a graph already: leave out --workers",
        ),
        (("train", "demo", *GCN, "--on", "ray"), "torchrun shares the parts of a graph already: leave out"),
        (("tune", "demo"), "torchrun is for train only"),
        (("reproduce", "bottleneck"), "torchrun is for train only"),
    ],
)
def test_torchrun_is_refused_before_the_work_begins(command, here, monkeypatch, words, message):
    for name, value in {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    done = command(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert list(here.iterdir()) == []
