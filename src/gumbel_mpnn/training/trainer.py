"""Trains a group of replicas: steps, evaluations, best states and checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from gumbel_mpnn.nn.layers import cross_entropy
from gumbel_mpnn.settings import Replica, Settings
from gumbel_mpnn.training.best_states import MOST_LOSS, BestStates
from gumbel_mpnn.training.build import (
    activation_precision,
    build_model,
    class_scores,
    fit_features,
    pair_probability,
    seen_by,
)
from gumbel_mpnn.training.checkpoint import load_tensors, save_tensors
from gumbel_mpnn.training.metrics import metrics
from gumbel_mpnn.training.replay import Replay
from gumbel_mpnn.training.task import Batch, Task, balanced
from gumbel_mpnn.util.errors import DataError, DivergedError
from gumbel_mpnn.util.files import none_if_nan

STOP_CHECK_EVERY = 20
"""Evaluations between two checks for stopped replicas; on a GPU, each check waits for the device."""
MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""State of Adam for each parameter."""
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
        replicas = [self.replicas[place] for place in places]
        self.model = build_model(self.settings, self.task, replicas)
        self.optimizer = Adam(self.model.parameter_groups(self.settings))
        self.train_mask, self.val_mask, _ = self.task.masks(replicas)
        fit_features(self.model, self.task, self.train_mask)
        self.seen = seen_by(self.model, self.task)
        weight = balanced(self.task.y, self.train_mask) if self.settings.train.class_weights == "balanced" else None
        whole = Batch(self.seen, self.task.y, self.train_mask, weight)
        in_parts = [batch for part in self.task.parts if (batch := whole.of_part(part))]
        self.batches = in_parts if self.task.parts else [whole]
        validated = self.val_mask.any(-1)
        self.validated = None if validated.all() else validated
        """Replicas with validation nodes, [R]; None if all have some."""
        self.train_loss = torch.zeros(len(replicas), device=self.device)
        self.latest = torch.zeros(len(replicas), 3, dtype=torch.float64, device=self.device)
        # Parts come from the memory of the CPU, which cannot be captured.
        self._replay_step = self._step if self.task.parts else Replay(self._step, self.device)
        self._replay_evaluate = self._evaluate if self.task.parts else Replay(self._evaluate, self.device)

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
        self.optimizer.zero_grad()
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
        if not all(finite):
            raise DivergedError(
                f"training diverged (no finite validation value with a loss below {MOST_LOSS:.0e}): try a smaller"
                " train.lr, or data.features=standardized if features are large",
                runs=[str(replica) for replica, good in zip(self.replicas, finite, strict=True) if not good],
            )
        count = len(self.replicas)
        # Other processes may use the memory of replicas left out, so at most as many are evaluated at once as are in
        # training, or a quarter of all.
        size = max(len(self.places), -(-count // 4))
        share = seconds / count
        return [outcome for first in range(0, count, size) for outcome in self._outcomes(first, first + size, share)]

    def _outcomes(self, first: int, end: int, seconds: float) -> list[Outcome]:
        replicas = self.replicas[first:end]
        best = self.best.rows(list(range(first, first + len(replicas))))
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
                history=self._history(history[r], last[r]),
                state={name: value[r : r + 1].cpu().clone() for name, value in best.best_state.items()},
                probability=None if learned is None else learned[r].cpu(),
            )
            for r, replica in enumerate(replicas)
        ]

    def _history(self, rows: list[list[float]], last_epoch: int) -> list[dict[str, float | None]]:
        every, epochs = self.settings.train.eval_every, self.settings.train.epochs
        return [
            {"epoch": epoch, "train_loss": train_loss, "val": none_if_nan(val), "val_loss": none_if_nan(val_loss)}
            for k, (train_loss, val, val_loss) in enumerate(rows, start=1)
            if (epoch := min(k * every, epochs)) <= last_epoch
        ]

    def save(self, path: Path, seconds: float) -> None:
        """Write a checkpoint from which `load` continues with identical results, and the time spent so far."""
        self._gather()
        best = self.best.tensors()
        best["history"] = self.best.history[:, : self.evaluations]
        note = {
            "epoch": self.epoch,
            "seconds": seconds,
            "replicas": [str(replica) for replica in self.replicas],
            "places": self.places,
        }
        save_tensors(path, self._state() | best, note)

    def load(self, path: Path) -> float:
        """Continue from a checkpoint; returns the seconds spent until then."""
        tensors, note = load_tensors(path, "training begins anew")
        if note.get("replicas") != [str(replica) for replica in self.replicas]:
            raise DataError(f"the checkpoint {path} is of other runs: delete it to start training again")
        self._set_up(note["places"])
        self._load_state(tensors)
        self.evaluations = tensors["history"].shape[1]
        best = self.best.tensors()
        best["history"] = best["history"][:, : self.evaluations]
        for name, value in best.items():
            value.copy_(tensors[name])
        self.current = self.best if len(self.places) == len(self.replicas) else self.best.rows(self.places)
        self.epoch, self.stopped = note["epoch"], not self.current.running.any()
        self.epochs_done.fill_(self.epoch)
        return float(note["seconds"])

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


class Adam:
    """Compute the same as `torch.optim.Adam`, whose class imports torch's compiler: a second before the first step."""

    def __init__(self, groups: Sequence[Mapping[str, Any]]) -> None:
        self.groups = groups
        self.params: list[Tensor] = [param for group in groups for param in group["params"]]
        self.on_gpu = self.params[0].is_cuda
        device = self.params[0].device  # that of the steps too, since a captured step counts on the GPU
        self.state = {
            param: {
                "step": torch.zeros((), device=device),
                "exp_avg": torch.zeros_like(param, requires_grad=False),
                "exp_avg_sq": torch.zeros_like(param, requires_grad=False),
            }
            for param in self.params
        }

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for param in self.params:
            param.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change all parameters that have gradients."""
        for group in self.groups:
            params = [param for param in group["params"] if param.grad is not None]
            steps, means, squares = ([self.state[param][name] for param in params] for name in MOMENTS)
            adam(
                params,
                [param.grad for param in params if param.grad is not None],
                means,
                squares,
                [],
                steps,
                fused=self.on_gpu,
                foreach=not self.on_gpu,
                capturable=self.on_gpu,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=1e-8,
                maximize=False,
            )

    def tensors(self) -> dict[str, Tensor]:
        """State by the number of the parameter and by name, such as `0/exp_avg`."""
        return {f"{k}/{name}": self.state[param][name] for k, param in enumerate(self.params) for name in MOMENTS}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from `tensors` of an optimizer with the same parameters."""
        for key, value in self.tensors().items():
            value.copy_(tensors[key])
