"""Runs as tasks of a Ray cluster: the only package that uses Ray, imported if a cluster is asked for.

A task trains one group of replicas of a setting. Ray decides where and when, and starts it again if its worker dies.
Tasks share a store in one of two ways:

- `shared`: the folder of runs is on a disk that every machine has. A task claims its group with file locks, as every
  process does, and writes to the store.
- `driver`: the calling process claims the groups. A task trains in a temporary folder and returns the files, which the
  calling process writes.

The graph travels with the tasks, so that the machines need no files of the user.
"""

import os

from gumbel_mpnn.util.errors import UserError

# Ray reads these when it is imported: no reports of usage, no messages of dead workers on standard output, and an end
# of the retries of tasks that Ray kills for want of memory.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_TQDM_PATCH_PRINT", "0")  # Ray would replace `print`, and numba compiles nothing with it
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".*")
os.environ.setdefault("RAY_task_oom_retries", "3")
try:
    import ray as _  # noqa: F401
except ImportError:
    raise UserError('a cluster needs Ray, which is not installed: pip install "gumbel-mpnn[cluster]"') from None
