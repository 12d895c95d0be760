"""What several tests of training need."""

import itertools

import pytest
import torch

from gumbel_mpnn.training import metrics, trainer
from helpers import changed, small_data


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


@pytest.fixture
def finer():
    """Class 1 has two labels in the first split; the second split uses only one of them."""
    data = small_data()
    first = torch.tensor([0, 1, 3])[data.y]
    column = first.clone()
    column[(data.train_mask[:, 0] & (data.y == 1)).nonzero()[::2, 0]] = 2
    assert set(column[data.train_mask[:, 0]].tolist()) == {0, 1, 2, 3}
    return changed(data, train_y=torch.stack([column, first], dim=1), class_of=torch.tensor([0, 1, 1, 2]))
