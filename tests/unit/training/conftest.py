"""What several tests of training need."""

import itertools

import pytest
import torch

from gumbel_mpnn.training import metrics, trainer


@pytest.fixture
def scripted(monkeypatch):
    """Makes the metric say what a script says: one list per replica, one entry per evaluation, the last repeated."""

    def install(*scripts):
        calls, set_up, places = itertools.count(), trainer.Trainer._set_up, []

        def watch(self, chosen):
            places[:] = chosen
            set_up(self, chosen)

        def metric(logits, y, mask):
            step = next(calls)
            return torch.tensor([scripts[place][min(step, len(scripts[place]) - 1)] for place in places])

        monkeypatch.setattr(trainer.Trainer, "_set_up", watch)
        monkeypatch.setitem(metrics, "accuracy", metric)

    return install
