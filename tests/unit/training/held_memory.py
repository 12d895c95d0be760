"""Trains on a CPU, in a process of its own, and prints by how many bytes 120 evaluations made it larger."""

import os
import sys
from pathlib import Path

from gumbel_mpnn.training import Task
from gumbel_mpnn.training.trainer import Trainer
from helpers import make_settings, replicas, small_data


def held_bytes():
    """The memory of this process that is there, and not only asked for."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


settings = make_settings("mlp", {"hidden_channels": 256, "num_layers": 3}, epochs=200)
task = Task.of(small_data(nodes=2700), settings.data, "cpu")
trainer = Trainer(task, settings, replicas((0, 0), (1, 0), (0, 1)))
for _ in range(5):
    trainer.step()
    trainer.evaluate()
before = held_bytes()
for _ in range(120):
    trainer.evaluate()
sys.stdout.write(str(held_bytes() - before))
