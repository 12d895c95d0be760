"""The one training loop: full batch, Adam, many replicas at once, best epoch by validation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from gumbel_mpnn.config import Settings
from gumbel_mpnn.errors import UserError
from gumbel_mpnn.nn import Backbone, backbones
from gumbel_mpnn.training.checkpoint import load_tensors, save_tensors
from gumbel_mpnn.training.metrics import metrics
from gumbel_mpnn.training.replay import Replay
from gumbel_mpnn.training.task import Replica, Task

REPORT_SECONDS = 0.2
CHECKPOINT_SECONDS = 5.0
CHECKPOINT_SHARE = 0.02
"""Writing checkpoints may take this share of the time."""
STOP_CHECK_EVERY = 20
"""Evaluations between two looks at whether all replicas have stopped: on a GPU each look waits for the device."""


class Watcher(Protocol):
    """Told now and then how far a group of replicas is."""

    def __call__(self, epoch: int, best: float) -> None:
        """`epoch` epochs are done, `best` is the mean of the replicas' best validation values."""


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


def train(
    task: Task,
    settings: Settings,
    replicas: Sequence[Replica],
    *,
    checkpoint: Path | None = None,
    watch: Watcher | None = None,
) -> list[Outcome]:
    """Train all `replicas` of a setting together, going on from `checkpoint` where that file is there."""
    with _matmul_precision(settings.train.tf32):
        trainer = _Trainer(task, settings, replicas)
        if checkpoint is not None and checkpoint.exists():
            trainer.load(checkpoint)
        clock = _Clock()
        while trainer.epoch < settings.train.epochs and not trainer.stopped:
            trainer.step()
            if trainer.epoch % settings.train.eval_every == 0 or trainer.epoch == settings.train.epochs:
                trainer.evaluate()
            if watch is not None and clock.report_due():
                watch(trainer.epoch, trainer.mean_best())
            if checkpoint is not None and clock.checkpoint_due():
                trainer.save(checkpoint)
                clock.checkpoint_written()
        outcomes = trainer.outcomes(clock.seconds())
    if checkpoint is not None and checkpoint.exists():
        trainer.save(checkpoint)  # long training is not lost if the program dies before the caller has kept its outcome
    return outcomes


def build_model(settings: Settings, task: Task, replicas: Sequence[Replica]) -> Backbone:
    """The model of `settings` with the replicas' own starts."""
    model = backbones[settings.model](
        task.num_features,
        task.num_classes,
        **settings.options,
        replicas=len(replicas),
        seeds=[replica.stream_seed for replica in replicas],
    )
    return model.to(task.y.device)


class _Trainer:
    """Model, optimizer and the best state so far of a group of replicas."""

    def __init__(self, task: Task, settings: Settings, replicas: Sequence[Replica]) -> None:
        self.task, self.settings, self.replicas = task, settings, list(replicas)
        device, count = task.y.device, len(replicas)
        on_gpu = device.type == "cuda"
        self.model = build_model(settings, task, replicas)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=settings.train.lr,
            weight_decay=settings.train.weight_decay,
            fused=on_gpu,
            foreach=not on_gpu,
            capturable=on_gpu,
        )
        self.metric = metrics[task.metric]
        self.train_mask, self.val_mask, self.test_mask = task.masks(replicas)
        self.labels = task.y.clamp(min=0).expand(count, -1)
        self.best_val = torch.full((count,), -torch.inf, device=device)
        self.best_loss = torch.full((count,), torch.inf, device=device)
        self.best_epoch = torch.zeros(count, dtype=torch.int64, device=device)
        self.last_epoch = torch.zeros_like(self.best_epoch)
        self.running = torch.ones_like(self.best_epoch, dtype=torch.bool)
        self.best_state = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.epochs_done = torch.zeros((), dtype=torch.int64, device=device)
        self.train_loss = torch.zeros(count, device=device)
        self.latest = torch.zeros(3, count, device=device)
        self.history: list[Tensor] = []
        self.epoch, self.stopped = 0, False
        self._replay_step = Replay(self._step, device)
        self._replay_evaluate = Replay(self._evaluate, device)

    def step(self) -> None:
        """One epoch: one full-batch step of every replica."""
        self._replay_step()
        self.epoch += 1

    def evaluate(self) -> None:
        """Look at validation; keep the state of every replica that is better than ever, and stop the tired ones."""
        self._replay_evaluate()
        self.history.append(self.latest.clone())
        if self.settings.train.patience and len(self.history) % STOP_CHECK_EVERY == 0:
            self.stopped = not self.running.any()

    def _step(self) -> None:
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._loss(self.model(self.task.features, self.task.graph), self.train_mask)
        loss.sum().backward()
        self.optimizer.step()
        self.train_loss.copy_(loss.detach())
        self.epochs_done += 1

    @torch.no_grad()
    def _evaluate(self) -> None:
        self.model.eval()
        logits = self.model(self.task.features, self.task.graph)
        val, loss = self.metric(logits, self.task.y, self.val_mask), self._loss(logits, self.val_mask)
        better = (val > self.best_val) | ((val == self.best_val) & (loss < self.best_loss))
        better &= self.running
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

    def _loss(self, logits: Tensor, mask: Tensor) -> Tensor:
        """Mean cross-entropy over each replica's mask, [R]."""
        nll = F.cross_entropy(logits.transpose(1, 2), self.labels, reduction="none")
        return (nll * mask).sum(-1) / mask.sum(-1)

    def mean_best(self) -> float:
        """Mean over the replicas of the best validation value so far."""
        return float(self.best_val.mean())

    @torch.no_grad()
    def outcomes(self, seconds: float) -> list[Outcome]:
        """The replicas at their best epochs; the only place where test labels are looked at."""
        if not torch.isfinite(self.best_val).all():
            raise UserError("training diverged (no finite validation value): try a smaller train.lr")
        self.model.load_state_dict(self.best_state)
        self.model.eval()
        logits = self.model(self.task.features, self.task.graph)
        test = self.metric(logits, self.task.y, self.test_mask).tolist()
        last, history = self.last_epoch.tolist(), torch.stack(self.history).cpu()
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

    def save(self, path: Path) -> None:
        """Everything that `load` needs to go on as if nothing had happened."""
        tensors = {f"model/{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in self.best_state.items()}
        for index, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam/{index}/{name}": value for name, value in state.items()}
        tensors |= {name: getattr(self, name) for name in _PROGRESS}
        tensors |= {f"streams/{name}": value for name, value in self.model.streams.get_state().items()}
        if self.history:
            tensors["history"] = torch.stack(self.history)
        save_tensors(path, tensors, {"epoch": self.epoch, "replicas": [str(replica) for replica in self.replicas]})

    def load(self, path: Path) -> None:
        """Go on from a file that `save` wrote."""
        tensors, note = load_tensors(path)
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
        self.history = list(tensors["history"].to(device)) if "history" in tensors else []
        self.epoch = note["epoch"]


_PROGRESS = ("best_val", "best_loss", "best_epoch", "last_epoch", "running", "train_loss", "epochs_done")


@contextmanager
def _matmul_precision(tf32: bool) -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


class _Clock:
    """When to report and when to write a checkpoint."""

    def __init__(self) -> None:
        self.start = self.reported = self.written = time.monotonic()
        self.pause = CHECKPOINT_SECONDS

    def seconds(self) -> float:
        return time.monotonic() - self.start

    def report_due(self) -> bool:
        due = time.monotonic() - self.reported >= REPORT_SECONDS
        if due:
            self.reported = time.monotonic()
        return due

    def checkpoint_due(self) -> bool:
        self.asked = time.monotonic()
        return self.asked - self.written >= self.pause

    def checkpoint_written(self) -> None:
        self.written = time.monotonic()
        self.pause = max(CHECKPOINT_SECONDS, (self.written - self.asked) / CHECKPOINT_SHARE)
