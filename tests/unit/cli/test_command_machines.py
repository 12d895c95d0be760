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
