"""What training takes of memory, measured, and the settings it is measured for on a CPU and on a GPU."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from gumbel_mpnn.settings import Replica, Settings, resolve
from gumbel_mpnn.training import Task, models
from gumbel_mpnn.training.build import prepare
from gumbel_mpnn.training.trainer import Trainer
from helpers import changed, small_data

FEW_ARCS = {"nodes": 600, "features": 32, "edges": 1200}
MANY_ARCS = {"nodes": 200, "features": 16, "edges": 4000}
MANY_FEATURES = {"nodes": 200, "features": 400, "edges": 400}
MANY_CLASSES = {"nodes": 300, "features": 16, "edges": 600, "classes": 40}
NARROW, WIDE = {"hidden_channels": 8}, {"hidden_channels": 128}

CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, int]]] = [
    ("mlp", {"norm": "batch", "num_layers": 1, "input_dropout": 0.5}, {}, FEW_ARCS),
    ("gcn", WIDE, {}, FEW_ARCS),
    ("gcn", NARROW, {}, MANY_CLASSES),
    ("sage", {"norm": "layer", "residual": True}, {}, FEW_ARCS),
    ("gat", {"heads": 8, "num_layers": 1, "hidden_channels": 8}, {}, MANY_ARCS),
    ("gumbel-mpnn", {"backbone": "appnp", "steps": 30, "hidden_channels": 8}, {}, MANY_CLASSES),
    ("drop-edge", {"per_layer": True, "backbone": "gat", "heads": 4, "norm": "layer"}, {}, FEW_ARCS),
    ("gumbel-mpnn", WIDE, {"samples": 2}, FEW_ARCS),
    ("gumbel-mpnn", {"input_dropout": 0.5}, {"samples": 2}, MANY_FEATURES),
    (
        "gumbel-mpnn",
        NARROW,
        {"scorer": "neighborhood", "samples": 3, "agreement": 1.0, "scorer.decoys": 2.0},
        MANY_CLASSES,
    ),
    ("gumbel-mpnn", NARROW, {"scorer": "neighborhood"}, MANY_ARCS),
    ("gumbel-mpnn", NARROW, {"scorer": "literal"}, MANY_FEATURES),
]


def settings_for(
    model: str, options: Mapping[str, Any], rewiring: Mapping[str, Any] | None = None, **train: Any
) -> Settings:
    """Settings of a model of width 64 unless `options` say otherwise; in the second epoch all is there that stays."""
    tables: dict[str, Any] = {"model": {"hidden_channels": 64, **options}, "train": {"epochs": 2, **train}}
    rewires = models[model].rewires
    if rewires:
        tables["rewiring"] = rewiring or {}
    return resolve("toy", model, tables, models.complete, rewires=rewires)


def task_for(settings: Settings, shape: Mapping[str, int], device: str = "cpu") -> Callable[[], Task]:
    """Makes tasks on a random graph of this shape; on each of them nothing has been laid out yet."""
    shape = dict(shape)
    edges = torch.randint(shape["nodes"], (2, shape.pop("edges")), generator=torch.Generator().manual_seed(1))
    data = prepare(changed(small_data(**shape), edge_index=edges), settings)

    def make() -> Task:
        return Task.of(changed(data, edge_index=data.edge_index.clone()), settings, device)

    return make


def train_whole(task: Task, settings: Settings, count: int) -> None:
    """Some epochs of `count` replicas, from the first parameter to the outcomes."""
    trainer = Trainer(task, settings, [Replica(0, seed) for seed in range(count)])
    for _ in range(settings.train.epochs):
        trainer.step()
        trainer.evaluate()
    trainer.outcomes(seconds=0.0)


def bytes_of_one_more(peak: Callable[[int], int]) -> int:
    """What one more replica adds to the peak; from two to four, since the first has no need of copies of the layout."""
    return (peak(4) - peak(2)) // 2


def peak_bytes_on_cpu(task: Task, settings: Settings, count: int, folder: Path) -> int:
    """The most bytes of tensors alive at once that training asked for, by the word of torch's allocator."""
    gc.collect()  # earlier trainers, which would be freed while this one is measured
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        train_whole(task, settings, count)
    trace = folder / "trace.json"
    watched.export_chrome_trace(str(trace))
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("name") == "[memory]"]
    first = min(events, key=lambda event: event["ts"])["args"]
    start = first["Total Allocated"] - first["Bytes"]
    return max(event["args"]["Total Allocated"] for event in events) - start


def peak_bytes_on_gpu(task: Task, settings: Settings, count: int) -> int:
    """The same on a CUDA device, captured and replayed steps included."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = torch.cuda.memory_allocated()
    train_whole(task, settings, count)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - start
