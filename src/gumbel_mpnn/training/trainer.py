"""Trains a group of replicas together: full batch or part by part, best epoch chosen on validation, checkpoints."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gumbel_mpnn.nn.layers import cross_entropy
from gumbel_mpnn.settings import Replica, Settings
from gumbel_mpnn.training.build import (
    activation_precision,
    build_model,
    class_scores,
    fit_features,
    matmul_precision,
    pair_probability,
    seen_by,
)
from gumbel_mpnn.training.captured import MOST_LOSS, Adam, BestStates, Replay
from gumbel_mpnn.training.metrics import metrics
from gumbel_mpnn.training.task import Batch, Task, balanced
from gumbel_mpnn.util.errors import DamagedError, DataError, DataWarning, DivergedError
from gumbel_mpnn.util.files import load_tensors, none_if_nan, save_tensors

REPORT_SECONDS = 0.2
CHECKPOINT_SECONDS = 30.0
"""Least time between two checkpoints and before the first one, since checkpoints of many replicas are large."""
CHECKPOINT_SHARE = 0.02
"""Largest share of the time that is spent on writing checkpoints."""
STOP_CHECK_EVERY = 20
"""Evaluations between two checks for stopped replicas; on a GPU, each check waits for the device."""
LEAVE_OUT_BELOW = 0.67
"""Stopped replicas are left out when at most this share still runs, not one by one, since on a GPU the step has to be
captured again."""


@dataclass(frozen=True)
class Outcome:
    """Result of one replica; `test` is computed once, for the epoch chosen on validation."""

    replica: Replica
    val: float | None
    """None if the split has no validation nodes."""
    test: float | None
    """None if the split has no test nodes, or if the metric is not defined on them."""
    best_epoch: int
    epochs: int
    seconds: float
    history: list[dict[str, float | None]]
    state: dict[str, Tensor]
    probability: Tensor | None = None
    """Probability of every pair to be an edge, [P], for a model that rewires the graph."""


class Trainer:
    """Model, optimizer and best states of a group of replicas; stopped replicas are left out over time."""

    def __init__(self, task: Task, settings: Settings, replicas: Sequence[Replica]) -> None:
        self.task, self.settings, self.replicas = task, settings, list(replicas)
        self.device = task.device
        self.metric = metrics[task.metric]
        self.epoch, self.evaluations, self.stopped = 0, 0, False
        self.epochs_done = torch.zeros((), dtype=torch.int64, device=self.device)
        self._set_up(range(len(replicas)))
        evaluations = -(-settings.train.epochs // settings.train.eval_every)
        self.best = BestStates.of(self.model.state_dict(), len(replicas), evaluations, self.device)
        self.current = self.best
        """Best states of the replicas in training; the same object as `best` until some are left out."""

    def _set_up(self, places: Sequence[int]) -> None:
        """Create model, optimizer and tensors for the replicas at `places`, as before the first step."""
        self.places = list(places)
        replicas, task = [self.replicas[place] for place in places], self.task
        self.model = build_model(self.settings, task, replicas)
        self.optimizer = Adam(self.model.parameter_groups(self.settings))
        self.train_mask, self.val_mask, _ = task.masks(replicas)
        fit_features(self.model, task, self.train_mask)
        self.seen = seen_by(self.model, task)
        weight = balanced(task.y, self.train_mask) if self.settings.train.class_weights == "balanced" else None
        whole = Batch(self.seen, task.y, self.train_mask, weight)
        self.batches = [batch for part in task.parts if (batch := whole.of_part(part))] if task.parts else [whole]
        validated = self.val_mask.any(-1)
        self.validated = None if validated.all() else validated
        """Replicas with validation nodes, [R]; None if all have some."""
        self.train_loss = torch.zeros(len(replicas), device=self.device)
        self.latest = torch.zeros(len(replicas), 3, dtype=torch.float64, device=self.device)
        # Parts come from the memory of the CPU, which cannot be captured.
        self._replay_step = self._step if task.parts else Replay(self._step, self.device)
        self._replay_evaluate = self._evaluate if task.parts else Replay(self._evaluate, self.device)

    def step(self) -> None:
        """Train for one epoch: one step of every replica, with the gradient of the whole graph or of all its parts."""
        self._replay_step()
        self.epoch += 1

    def evaluate(self) -> None:
        """Evaluate on validation; store the states of replicas that improved and stop those out of patience."""
        self._replay_evaluate()
        self.current.history[:, self.evaluations].copy_(self.latest)
        self.evaluations += 1
        if self.settings.train.patience and self.evaluations % STOP_CHECK_EVERY == 0:
            self._leave_out_stopped()

    def _step(self) -> None:
        self.model.train()
        self.model.zero_grad()
        progress = self.epochs_done / self.settings.train.epochs
        self.train_loss.zero_()
        for batch in self.batches:
            self.train_loss += self._backward(batch, progress)
        self.optimizer.step()
        self.epochs_done += 1

    def _backward(self, batch: Batch, progress: Tensor) -> Tensor:
        """Add the gradient of a batch to the others; returns its part of the loss, [R]."""
        if batch.share is not None:
            batch = batch.to(self.device)
            batch = replace(batch, seen=seen_by(self.model, batch.seen))
        seen, y, mask, weight = batch.seen, batch.y, batch.train_mask, batch.weight
        with activation_precision(self.settings, self.device):
            loss = self.model.training_loss(seen.features, seen.graph, y, mask, progress, weight)
        if batch.share is not None:
            loss = loss * batch.share
        loss.sum().backward()
        return loss.detach()

    @torch.no_grad()
    def _evaluate(self) -> None:
        self.model.eval()
        scores = class_scores(self.model, self.seen, self.settings)
        val, loss = self.metric(scores, self.task.y, self.val_mask), cross_entropy(scores, self.task.y, self.val_mask)
        self.latest.copy_(torch.stack([self.train_loss, val.to(self.device), loss.to(self.device)], dim=1))
        if self.validated is not None:  # without validation nodes, training nodes tell whether training diverged
            loss = torch.where(self.validated, loss, cross_entropy(scores, self.task.y, self.train_mask))
        val, loss = val.to(self.device), loss.to(self.device)
        self.current.update(val, loss, self.model.state_dict(), self.epochs_done, self.settings.train)

    def _leave_out_stopped(self) -> None:
        """Leave out stopped replicas, if there are enough of them to be worth setting up the others again."""
        running = self.current.running.nonzero().flatten().tolist()
        self.stopped = not running
        if self.stopped or len(running) > LEAVE_OUT_BELOW * len(self.places):
            return
        state = {name: value[running] if value.dim() else value for name, value in self._state().items()}
        self._gather()
        self._set_up([self.places[row] for row in running])
        self._load_state(state)
        self.current = self.best.rows(self.places)

    def _gather(self) -> None:
        """Write the best states of the replicas in training back to those of all replicas."""
        if self.current is not self.best:
            self.best.put(self.places, self.current)

    def mean_best(self) -> float:
        """Mean over all replicas of their best validation values; NaN if one has no validation nodes."""
        best = self.best.best_val.clone()
        best[self.places] = self.current.best_val
        return float(best.mean())

    def best_values(self, epoch: int) -> dict[Replica, float]:
        """Best validation value of each replica up to an epoch, or the last one if the last epoch is selected.

        It is −∞ before the first evaluation that counts and for values that are not finite.
        """
        self._gather()
        every = self.settings.train.eval_every
        val = self.best.history[:, : min(epoch // every, self.evaluations), 1]
        at = torch.arange(1, val.shape[1] + 1, device=val.device) * every
        done = (at >= self.settings.train.first_kept) & (at <= self.best.last_epoch[:, None])
        val = torch.where(done & val.isfinite(), val, -torch.inf)
        if self.settings.train.select == "last":
            val = val[:, -1:]
        best = val.amax(1).tolist() if val.shape[1] else [-float("inf")] * len(val)
        return dict(zip(self.replicas, best, strict=True))

    @torch.no_grad()
    def outcomes(self, seconds: float) -> list[Outcome]:
        """Results of all replicas at their best epochs; test labels are used nowhere else."""
        self._gather()
        finite = torch.isfinite(self.best.best_loss).tolist()
        if diverged := [str(replica) for replica, good in zip(self.replicas, finite, strict=True) if not good]:
            named = ", ".join(diverged[:3]) + f" and {len(diverged) - 3} more" * (len(diverged) > 3)
            raise DivergedError(
                f"training diverged (no finite validation value of {named} with a loss below {MOST_LOSS:.0e}): try a"
                " smaller train.lr, or data.features=standardized if features are large"
            )
        # Other processes may use the memory of replicas left out, so at most as many are evaluated at once as are in
        # training, or a quarter of all.
        count = len(self.replicas)
        size = max(len(self.places), -(-count // 4))
        rows = [list(range(first, min(first + size, count))) for first in range(0, count, size)]
        return [outcome for some in rows for outcome in self._outcomes(some, seconds / count)]

    def _outcomes(self, rows: list[int], seconds: float) -> list[Outcome]:
        replicas, best = [self.replicas[row] for row in rows], self.best.rows(rows)
        model = build_model(self.settings, self.task, replicas)
        model.load_state_dict(best.best_state)
        model.eval()
        seen = seen_by(model, self.task)
        scores = class_scores(model, seen, self.settings)
        test = self.metric(scores, self.task.y, self.task.masks(replicas)[2]).tolist()
        learned = pair_probability(model, seen, self.settings)
        last, history = best.last_epoch.tolist(), best.history[:, : self.evaluations].tolist()
        return [
            Outcome(
                replica=replica,
                val=none_if_nan(float(best.best_val[r])),
                test=none_if_nan(test[r]),
                best_epoch=int(best.best_epoch[r]),
                epochs=last[r],
                seconds=seconds,
                history=[row for row in self._history(history[r]) if row["epoch"] <= last[r]],
                state={name: value[r : r + 1].cpu().clone() for name, value in best.best_state.items()},
                probability=None if learned is None else learned[r].cpu(),
            )
            for r, replica in enumerate(replicas)
        ]

    def _history(self, rows: list[list[float]]) -> list[dict[str, Any]]:
        train = self.settings.train
        return [
            {
                "epoch": min(number * train.eval_every, train.epochs),
                "train_loss": train_loss,
                "val": none_if_nan(val),
                "val_loss": none_if_nan(val_loss),
            }
            for number, (train_loss, val, val_loss) in enumerate(rows, start=1)
        ]

    def save(self, path: Path, seconds: float) -> None:
        """Write a checkpoint from which `load` continues with identical results, and the time spent so far."""
        self._gather()
        names = [str(replica) for replica in self.replicas]
        note = {"epoch": self.epoch, "seconds": seconds, "replicas": names, "places": self.places}
        save_tensors(path, self._state() | self._all_best(), note)

    def load(self, path: Path) -> float:
        """Continue from a checkpoint; returns the seconds spent until then."""
        tensors, note = load_tensors(path, "training begins anew")
        if note.get("replicas") != [str(replica) for replica in self.replicas]:
            raise DataError(f"the checkpoint {path} is of other runs: delete it to start training again")
        self._set_up(note["places"])
        self._load_state(tensors)
        self.evaluations = tensors["history"].shape[1]
        for name, value in self._all_best().items():
            value.copy_(tensors[name])
        self.current = self.best if len(self.places) == len(self.replicas) else self.best.rows(self.places)
        self.epoch, self.stopped = note["epoch"], not self.current.running.any()
        self.epochs_done.fill_(self.epoch)
        return float(note["seconds"])

    def _all_best(self) -> dict[str, Tensor]:
        """Best states and history of all replicas until now."""
        return self.best.tensors() | {"history": self.best.history[:, : self.evaluations]}

    def _state(self) -> dict[str, Tensor]:
        """State to continue from: tensors with one row per replica in training, and scalars."""
        tensors = {f"model/{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"adam/{name}": value for name, value in self.optimizer.tensors().items()}
        return tensors | {f"rng/{name}": value for name, value in self.model.rng.get_state().items()}

    def _load_state(self, tensors: Mapping[str, Tensor]) -> None:
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "adam": {}, "rng": {}}
        for key, tensor in tensors.items():
            part, _, name = key.partition("/")
            if part in parts:
                parts[part][name] = tensor
        self.model.load_state_dict(parts["model"])
        self.optimizer.load(parts["adam"])
        self.model.rng.set_state(parts["rng"])


def train(
    task: Task,
    settings: Settings,
    replicas: Sequence[Replica],
    *,
    checkpoint: Path | None = None,
    watch: Callable[[int, float], None] | None = None,
    resumed: Callable[[int], None] | None = None,
    prune: Callable[[int, Mapping[Replica, float]], None] | None = None,
    prune_after: Sequence[int] = (),
) -> list[Outcome]:
    """Train all `replicas` of a setting together, continuing from `checkpoint` if the file exists.

    `resumed` is then called with the number of epochs that were done before, and `watch`, from time to time, with that
    of all epochs done and the mean of the best validation values. A damaged checkpoint is renamed, and training begins
    anew. After each epoch of `prune_after`, `prune` is called with the epoch and the best validation value of each
    replica until then; it stops training by an error. After a resumption, it is first called for epochs done before.
    """
    with matmul_precision():
        trainer, spent = _begin(task, settings, replicas, checkpoint)
        reported = written = time.monotonic()
        start, pause = written - spent, CHECKPOINT_SECONDS
        if resumed is not None and trainer.epoch:
            resumed(trainer.epoch)
        checks = list(prune_after)
        while trainer.epoch < settings.train.epochs and not trainer.stopped:
            while prune is not None and checks and checks[0] <= trainer.epoch:
                prune(checks[0], trainer.best_values(checks.pop(0)))
            trainer.step()
            if trainer.epoch % settings.train.eval_every == 0 or trainer.epoch == settings.train.epochs:
                trainer.evaluate()
            now = time.monotonic()
            if watch is not None and now - reported >= REPORT_SECONDS:
                watch(trainer.epoch, trainer.mean_best())
                reported = now
            if checkpoint is not None and now - written >= pause:
                trainer.save(checkpoint, now - start)
                written = time.monotonic()
                pause = max(CHECKPOINT_SECONDS, (written - now) / CHECKPOINT_SHARE)
        seconds = time.monotonic() - start
        if checkpoint is not None and checkpoint.exists():
            # Long training is not lost if the program is killed before the caller has stored the outcome.
            trainer.save(checkpoint, seconds)
        return trainer.outcomes(seconds)


def _begin(
    task: Task, settings: Settings, replicas: Sequence[Replica], checkpoint: Path | None
) -> tuple[Trainer, float]:
    """A trainer, which continues from the checkpoint if there is one, and the seconds spent until then."""
    if checkpoint is not None and checkpoint.exists():
        trainer = Trainer(task, settings, replicas)
        try:
            return trainer, trainer.load(checkpoint)
        except DamagedError as error:
            del trainer  # two of them may not fit into memory
            aside = checkpoint.with_name(f"{checkpoint.name}.damaged")
            checkpoint.replace(aside)
            warnings.warn(f"{error}; it is now called {aside.name}", DataWarning, stacklevel=4)
    return Trainer(task, settings, replicas), 0.0
