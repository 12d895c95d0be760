"""A group of replicas in training: one step, one evaluation, the best states, saving and going on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gumbel_mpnn._util.errors import DataError, DivergedError
from gumbel_mpnn.config import Replica, Settings
from gumbel_mpnn.nn.modules import cross_entropy
from gumbel_mpnn.training.best_states import BestStates
from gumbel_mpnn.training.build import build_model
from gumbel_mpnn.training.checkpoint import load_tensors, save_tensors
from gumbel_mpnn.training.metrics import metrics
from gumbel_mpnn.training.precision import activation_precision, class_scores, pair_probability
from gumbel_mpnn.training.replay import Replay
from gumbel_mpnn.training.task import Task

STOP_CHECK_EVERY = 20
"""Evaluations between two looks at which replicas have stopped: on a GPU each look waits for the device."""
LEAVE_OUT_BELOW = 0.67
"""When no more than this share of the replicas in training still runs, the others are left out: not with each one that
stops, since on a GPU the step has to be captured anew."""


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
    """Model, optimizer and progress of a group of replicas; those that have stopped are left out by and by."""

    def __init__(self, task: Task, settings: Settings, replicas: Sequence[Replica]) -> None:
        if task.metric == "roc_auc" and task.num_classes != 2:
            raise DataError(f"the metric roc_auc is for two classes, but there are {task.num_classes}")
        self.task, self.settings, self.replicas = task, settings, list(replicas)
        self.device = task.y.device
        self.metric = metrics[task.metric]
        self.epoch, self.evaluations, self.stopped = 0, 0, False
        self.epochs_done = torch.zeros((), dtype=torch.int64, device=self.device)
        self._set_up(range(len(replicas)))
        evaluations = -(-settings.train.epochs // settings.train.eval_every)
        self.progress = BestStates.of(self.model.state_dict(), len(replicas), evaluations, self.device)
        self.current = self.progress
        """The progress of those in training: the same, until some are left out."""

    def _set_up(self, places: Sequence[int]) -> None:
        """Make what trains the replicas at these places, as they are before the first step."""
        self.places = list(places)
        replicas = [self.replicas[place] for place in places]
        on_gpu = self.device.type == "cuda"
        self.model = build_model(self.settings, self.task, replicas)
        self.optimizer = torch.optim.Adam(
            self.model.parameter_groups(self.settings),
            fused=on_gpu,
            foreach=not on_gpu,
            capturable=on_gpu,
        )
        self.targets = self.task.targets(replicas)
        self.train_mask, self.val_mask, _ = self.task.masks(replicas)
        self.train_loss = torch.zeros(len(replicas), device=self.device)
        self.latest = torch.zeros(len(replicas), 3, dtype=torch.float64, device=self.device)
        self._replay_step = Replay(self._step, self.device)
        self._replay_evaluate = Replay(self._evaluate, self.device)

    def step(self) -> None:
        """One epoch: one full-batch step of every replica in training."""
        self._replay_step()
        self.epoch += 1

    def evaluate(self) -> None:
        """Look at validation; keep the state of every replica that is better than ever, and stop the tired ones."""
        self._replay_evaluate()
        self.current.history[:, self.evaluations].copy_(self.latest)
        self.evaluations += 1
        if self.settings.train.patience and self.evaluations % STOP_CHECK_EVERY == 0:
            self._leave_out_stopped()

    def _step(self) -> None:
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        progress = self.epochs_done / self.settings.train.epochs
        with activation_precision(self.settings, self.device):
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
        self.latest.copy_(torch.stack([self.train_loss, val, loss], dim=1))
        self.current.update(val, loss, self.model.state_dict(), self.epochs_done, self.settings.train.patience)

    def _leave_out_stopped(self) -> None:
        """Go on with those that still run alone, where that is worth making everything anew for them."""
        running = self.current.running.nonzero().flatten().tolist()
        self.stopped = not running
        if self.stopped or len(running) > LEAVE_OUT_BELOW * len(self.places):
            return
        state = {name: value[running] if value.dim() else value for name, value in self._state().items()}
        self._gather_progress()
        self._set_up([self.places[row] for row in running])
        self._load_state(state)
        self.current = self.progress.rows(self.places)

    def _gather_progress(self) -> None:
        if self.current is not self.progress:
            self.progress.put(self.places, self.current)

    def mean_best(self) -> float:
        """Mean over the replicas of the best validation value so far."""
        best = self.progress.best_val.clone()
        best[self.places] = self.current.best_val
        return float(best.mean())

    @torch.no_grad()
    def outcomes(self, seconds: float) -> list[Outcome]:
        """The replicas at their best epochs; the only place where test labels are looked at."""
        self._gather_progress()
        finite = torch.isfinite(self.progress.best_val).tolist()
        if not all(finite):
            raise DivergedError(
                "training diverged (no finite validation value): try a smaller train.lr",
                runs=[str(replica) for replica, good in zip(self.replicas, finite, strict=True) if not good],
            )
        count = len(self.replicas)
        # The memory of those left out may be in use by others: no more at once than are in training, or than a quarter.
        size = max(len(self.places), -(-count // 4))
        share = seconds / count
        return [outcome for first in range(0, count, size) for outcome in self._outcomes(first, first + size, share)]

    def _outcomes(self, first: int, end: int, seconds: float) -> list[Outcome]:
        replicas = self.replicas[first:end]
        best = self.progress.rows(list(range(first, first + len(replicas))))
        model = build_model(self.settings, self.task, replicas)
        model.load_state_dict(best.best_state)
        model.eval()
        scores = class_scores(model, self.task, self.settings)
        test = self.metric(scores, self.task.y, self.task.masks(replicas)[2]).tolist()
        learned = pair_probability(model, self.task, self.settings)
        last, history = best.last_epoch.tolist(), best.history[:, : self.evaluations].tolist()
        return [
            Outcome(
                replica=replica,
                val=float(best.best_val[r]),
                test=test[r],
                best_epoch=int(best.best_epoch[r]),
                epochs=last[r],
                seconds=seconds,
                history=self._history(history[r], last[r]),
                state={name: value[r : r + 1].cpu().clone() for name, value in best.best_state.items()},
                probability=None if learned is None else learned[r].cpu(),
            )
            for r, replica in enumerate(replicas)
        ]

    def _history(self, rows: list[list[float]], last_epoch: int) -> list[dict[str, float]]:
        every, epochs = self.settings.train.eval_every, self.settings.train.epochs
        return [
            {"epoch": epoch, "train_loss": train_loss, "val": val, "val_loss": val_loss}
            for k, (train_loss, val, val_loss) in enumerate(rows, start=1)
            if (epoch := min(k * every, epochs)) <= last_epoch
        ]

    def save(self, path: Path, seconds: float) -> None:
        """Everything that `load` needs to go on as if nothing had happened, and the time spent so far."""
        self._gather_progress()
        progress = self.progress.tensors()
        progress["history"] = self.progress.history[:, : self.evaluations]
        note = {
            "epoch": self.epoch,
            "seconds": seconds,
            "replicas": [str(replica) for replica in self.replicas],
            "places": self.places,
        }
        save_tensors(path, self._state() | progress, note)

    def load(self, path: Path) -> float:
        """Go on from a file that `save` wrote; returns the seconds spent until then."""
        tensors, note = load_tensors(path)
        other = DataError(
            f"the checkpoint {path} is of other runs or an older version: delete it to train these from the start"
        )
        expected = [str(replica) for replica in self.replicas]
        if note.get("replicas") != expected or "places" not in note or "rng/calls" not in tensors:
            raise other
        self._set_up(note["places"])
        shapes = {f"model/{name}": value.shape for name, value in self.model.state_dict().items()}
        if {name: value.shape for name, value in tensors.items() if name.startswith("model/")} != shapes:
            raise other
        self._load_state(tensors)
        self.evaluations = tensors["history"].shape[1]
        progress = self.progress.tensors()
        progress["history"] = progress["history"][:, : self.evaluations]
        for name, value in progress.items():
            value.copy_(tensors[name])
        self.current = self.progress if len(self.places) == len(self.replicas) else self.progress.rows(self.places)
        self.epoch, self.stopped = note["epoch"], not self.current.running.any()
        self.epochs_done.fill_(self.epoch)
        return float(note["seconds"])

    def _state(self) -> dict[str, Tensor]:
        """What training goes on from: tensors with a row for each replica in training, or of none."""
        tensors = {f"model/{name}": value for name, value in self.model.state_dict().items()}
        for index, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam/{index}/{name}": value for name, value in state.items()}
        return tensors | {f"rng/{name}": value for name, value in self.model.rng.get_state().items()}

    def _load_state(self, tensors: Mapping[str, Tensor]) -> None:
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "adam": {}, "rng": {}}
        for key, tensor in tensors.items():
            part, _, name = key.partition("/")
            if part in parts:
                parts[part][name] = tensor
        self.model.load_state_dict(parts["model"])
        state: dict[int, dict[str, Any]] = {}
        for name, value in parts["adam"].items():
            index, _, key = name.partition("/")
            state.setdefault(int(index), {})[key] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        self.model.rng.set_state(parts["rng"])
