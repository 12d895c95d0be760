"""A group of replicas in training: one step, one evaluation, the best states, saving and going on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gumbel_mpnn.config import Settings
from gumbel_mpnn.errors import DataError, DivergedError
from gumbel_mpnn.nn.loss import cross_entropy
from gumbel_mpnn.records import Replica
from gumbel_mpnn.rewiring import GumbelMPNN
from gumbel_mpnn.training.checkpoint import load_tensors, save_tensors
from gumbel_mpnn.training.metrics import metrics
from gumbel_mpnn.training.models import Model, build_model
from gumbel_mpnn.training.precision import activation_precision, class_scores, pair_probability
from gumbel_mpnn.training.replay import Replay
from gumbel_mpnn.training.task import Task

STOP_CHECK_EVERY = 20
"""Evaluations between two looks at whether all replicas have stopped: on a GPU each look waits for the device."""


@dataclass(frozen=True)
class Outcome:
    """What one replica ended with; `test` was computed once, for the epoch chosen on validation."""

    replica: Replica
    val: float
    test: float
    best_epoch: int
    epochs: int
    seconds: float
    history: list[dict[str, float]]
    state: dict[str, Tensor]
    probability: Tensor | None = None
    """How likely every pair of the graph is to be an edge, [P], for a model that rewires."""


class Trainer:
    """Model, optimizer and the best state so far of a group of replicas."""

    def __init__(self, task: Task, settings: Settings, replicas: Sequence[Replica]) -> None:
        if task.metric == "roc_auc" and task.num_classes != 2:
            raise DataError(f"the metric roc_auc is for two classes, but there are {task.num_classes}")
        self.task, self.settings, self.replicas = task, settings, list(replicas)
        device, count = task.y.device, len(replicas)
        on_gpu = device.type == "cuda"
        self.model = build_model(settings, task, replicas)
        self.optimizer = torch.optim.Adam(
            _parameter_groups(self.model, settings),
            fused=on_gpu,
            foreach=not on_gpu,
            capturable=on_gpu,
        )
        self.metric = metrics[task.metric]
        self.targets = task.targets(replicas)
        self.train_mask, self.val_mask, self.test_mask = task.masks(replicas)
        self.best_val = torch.full((count,), -torch.inf, dtype=torch.float64, device=device)
        self.best_loss = torch.full((count,), torch.inf, device=device)
        self.best_epoch = torch.zeros(count, dtype=torch.int64, device=device)
        self.last_epoch = torch.zeros_like(self.best_epoch)
        self.running = torch.ones_like(self.best_epoch, dtype=torch.bool)
        self.best_state = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.epochs_done = torch.zeros((), dtype=torch.int64, device=device)
        self.train_loss = torch.zeros(count, device=device)
        self.latest = torch.zeros(3, count, dtype=torch.float64, device=device)
        # Made once: small tensors that stay, among large ones that go, keep a CPU's memory from being used again.
        evaluations = -(-settings.train.epochs // settings.train.eval_every)
        self.history = torch.zeros(evaluations, 3, count, dtype=torch.float64, device=device)
        self.epoch, self.evaluations, self.stopped = 0, 0, False
        self._replay_step = Replay(self._step, device)
        self._replay_evaluate = Replay(self._evaluate, device)

    def step(self) -> None:
        """One epoch: one full-batch step of every replica."""
        self._replay_step()
        self.epoch += 1

    def evaluate(self) -> None:
        """Look at validation; keep the state of every replica that is better than ever, and stop the tired ones."""
        self._replay_evaluate()
        self.history[self.evaluations].copy_(self.latest)
        self.evaluations += 1
        if self.settings.train.patience and self.evaluations % STOP_CHECK_EVERY == 0:
            self.stopped = not self.running.any()

    def _step(self) -> None:
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        progress = self.epochs_done / self.settings.train.epochs
        with activation_precision(self.settings, self.task.y.device):
            loss = self.model.training_loss(
                self.task.features, self.task.graph, self.targets, self.train_mask, progress
            )
        loss.sum().backward()
        self.optimizer.step()
        self.train_loss.copy_(loss.detach())
        self.epochs_done += 1

    @torch.no_grad()
    def _evaluate(self) -> None:
        self.model.eval()
        scores = class_scores(self.model, self.task, self.settings)
        val, loss = self.metric(scores, self.task.y, self.val_mask), cross_entropy(scores, self.task.y, self.val_mask)
        better = (val > self.best_val) | ((val == self.best_val) & (loss < self.best_loss))
        better &= self.running & torch.isfinite(loss)
        self.last_epoch.copy_(torch.where(self.running, self.epochs_done, self.last_epoch))
        self._keep(better, val, loss)
        self.latest.copy_(torch.stack([self.train_loss, val, loss]))
        if self.settings.train.patience:
            self.running &= self.epochs_done - self.best_epoch < self.settings.train.patience

    def _keep(self, better: Tensor, val: Tensor, loss: Tensor) -> None:
        if better.device.type == "cpu" and not better.any():
            return
        self.best_val.copy_(torch.where(better, val, self.best_val))
        self.best_loss.copy_(torch.where(better, loss, self.best_loss))
        self.best_epoch.copy_(torch.where(better, self.epochs_done, self.best_epoch))
        for name, value in self.model.state_dict().items():
            best = self.best_state[name]
            torch.where(better.view(-1, *[1] * (value.dim() - 1)), value, best, out=best)

    def mean_best(self) -> float:
        """Mean over the replicas of the best validation value so far."""
        return float(self.best_val.mean())

    @torch.no_grad()
    def outcomes(self, seconds: float) -> list[Outcome]:
        """The replicas at their best epochs; the only place where test labels are looked at."""
        finite = torch.isfinite(self.best_val).tolist()
        if not all(finite):
            raise DivergedError(
                "training diverged (no finite validation value): try a smaller train.lr",
                runs=[str(replica) for replica, good in zip(self.replicas, finite, strict=True) if not good],
            )
        self.model.load_state_dict(self.best_state)
        self.model.eval()
        scores = class_scores(self.model, self.task, self.settings)
        test = self.metric(scores, self.task.y, self.test_mask).tolist()
        learned = pair_probability(self.model, self.task, self.settings)
        last, history = self.last_epoch.tolist(), self.history[: self.evaluations].cpu()
        return [
            Outcome(
                replica=replica,
                val=float(self.best_val[r]),
                test=test[r],
                best_epoch=int(self.best_epoch[r]),
                epochs=last[r],
                seconds=seconds / len(self.replicas),
                history=self._history(history[:, :, r], last[r]),
                state={name: value[r : r + 1].cpu().clone() for name, value in self.best_state.items()},
                probability=None if learned is None else learned[r].cpu(),
            )
            for r, replica in enumerate(self.replicas)
        ]

    def _history(self, rows: Tensor, last_epoch: int) -> list[dict[str, float]]:
        every, epochs = self.settings.train.eval_every, self.settings.train.epochs
        return [
            {"epoch": epoch, "train_loss": train_loss, "val": val, "val_loss": val_loss}
            for k, (train_loss, val, val_loss) in enumerate(rows.tolist(), start=1)
            if (epoch := min(k * every, epochs)) <= last_epoch
        ]

    def save(self, path: Path, seconds: float) -> None:
        """Everything that `load` needs to go on as if nothing had happened, and the time spent so far."""
        tensors = {f"model/{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in self.best_state.items()}
        for index, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam/{index}/{name}": value for name, value in state.items()}
        tensors |= {name: getattr(self, name) for name in _PROGRESS}
        tensors |= {f"streams/{name}": value for name, value in self.model.streams.get_state().items()}
        tensors["history"] = self.history[: self.evaluations]
        note = {"epoch": self.epoch, "seconds": seconds, "replicas": [str(replica) for replica in self.replicas]}
        save_tensors(path, tensors, note)

    def load(self, path: Path) -> float:
        """Go on from a file that `save` wrote; returns the seconds spent until then."""
        tensors, note = load_tensors(path)
        shapes = {f"model/{name}": value.shape for name, value in self.model.state_dict().items()}
        found = {name: value.shape for name, value in tensors.items() if name.startswith("model/")}
        if note.get("replicas") != [str(replica) for replica in self.replicas] or found != shapes:
            raise DataError(f"the checkpoint {path} is of other runs: delete it to train these from the start")
        device = self.task.y.device
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "adam": {}, "streams": {}}
        for key, tensor in tensors.items():
            part, slash, name = key.partition("/")
            if slash:
                parts[part][name] = tensor
        self.model.load_state_dict(parts["model"])
        self.best_state = {name: value.to(device) for name, value in parts["best"].items()}
        state: dict[int, dict[str, Any]] = {}
        for name, value in parts["adam"].items():
            index, _, key = name.partition("/")
            state.setdefault(int(index), {})[key] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        for name in _PROGRESS:
            setattr(self, name, tensors[name].to(device))
        self.model.streams.set_state(parts["streams"])
        self.evaluations = len(tensors["history"])
        self.history[: self.evaluations] = tensors["history"].to(device)
        self.epoch, self.stopped = note["epoch"], not self.running.any()
        return float(note["seconds"])


def _parameter_groups(model: Model, settings: Settings) -> list[dict[str, Any]]:
    """The parameters with their learning rates and weight decays: those of a rewirer have their own."""
    rewirer = list(model.rewirer.parameters()) if isinstance(model, GumbelMPNN) else []
    apart = set(map(id, rewirer))
    others = [parameter for parameter in model.parameters() if id(parameter) not in apart]
    groups = [(others, settings.train), (rewirer, settings.rewiring)]
    return [
        {"params": parameters, "lr": of.lr, "weight_decay": of.weight_decay}
        for parameters, of in groups
        if parameters and of is not None
    ]


_PROGRESS = ("best_val", "best_loss", "best_epoch", "last_epoch", "running", "train_loss", "epochs_done")
