"""All that a page shows of runs, as plain JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._version import __version__
from gumbel_mpnn.data.splits import by_split
from gumbel_mpnn.measures import MEASURES, measure, neighborhood_distributions, undirected_edges
from gumbel_mpnn.measures.homophily import OF_PAIRS
from gumbel_mpnn.measures.neighborhoods import neighbor_label_counts
from gumbel_mpnn.measures.structure import class_count
from gumbel_mpnn.nn import backbones
from gumbel_mpnn.report.graphs import class_names, degree_histograms, pairs_of
from gumbel_mpnn.report.page.explorer import AUDITED, Explored, explorer_of
from gumbel_mpnn.report.style import MODEL_NAMES
from gumbel_mpnn.runs.audit import Audit
from gumbel_mpnn.runs.choice import read_choices
from gumbel_mpnn.runs.compare import compare, mean_interval
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.store import TRIALS, Record, Summary, find_records
from gumbel_mpnn.util.errors import UserError, counted
from gumbel_mpnn.util.files import none_if_nan

CONTROL = "frozen"
MOST_CURVES = 20
MOST_POINTS = 150
MOST_CLASSES = 50
"""More classes have no matrices."""
Records = Sequence[Record]


def page_content(runs: Sequence[Run], around: Sequence[str] = ()) -> dict[str, Any]:
    """Content of the page of runs; a part that cannot be made has the reason in place of its values."""
    parts, by_data = list[dict[str, Any]](), dict[str, list[tuple[dict[str, Any], Explored]]]()
    for run, name in zip(runs, _names(runs), strict=True):
        pairs, audit = _attempt(pairs_of, run), _attempt(Run.audit, run)
        parts.append(_part(run, name, pairs, audit))
        if isinstance(pairs, pd.DataFrame):
            explored = (run, pairs, audit if isinstance(audit, Audit) else None)
            by_data.setdefault(run.records[0].data_hash, []).append((parts[-1], explored))
    graphs = list[dict[str, Any]]()
    for same in by_data.values():  # runs on the same data share a graph
        graph, of_runs = explorer_of([explored for _, explored in same], around)
        for (part, _), shown in zip(same, of_runs, strict=True):
            part["explorer"] = {"graph": len(graphs), **shown}
        graphs.append(graph)
    unknown = [name for name in around if graphs and not any(name in graph["ids"] for graph in graphs)]
    if unknown:
        raise UserError(f"there is no node {unknown[0]!r} in the data of these runs: give the id of a node")
    data = list(dict.fromkeys(run.settings.dataset for run in runs))
    return {"title": f"Rewiring report: {', '.join(data)}", "version": __version__, "runs": parts, "graphs": graphs}


def _attempt(make: Callable[..., Any], *arguments: Any) -> Any:
    """What `make` returns or, if data or models are missing, the sentence that says so."""
    try:
        return make(*arguments)
    except UserError as error:
        return {"missing": str(error)}


def _part(run: Run, name: str, pairs: pd.DataFrame | dict[str, Any], audit: Audit | dict[str, Any]) -> dict[str, Any]:
    splits, seeds = {record.split for record in run.records}, {record.seed for record in run.records}
    about = {
        "dataset": run.settings.dataset,
        "model": run.settings.model,
        "fingerprint": run.records[0].fingerprint,
        "metric": run.metric.replace("_", " "),
        "runs": f"{counted(run.n, 'run')} ({counted(len(splits), 'split')}, {counted(len(seeds), 'seed')})",
        "rewires": run.rewires,
    }
    if isinstance(audit, Audit):
        rows = audit.to_dict(AUDITED)
        audit = {"suspicious": rows["edges"], "absent": rows["missing"]}
    return {
        "name": name,
        "about": about,
        "table": _attempt(_comparison, run),
        "curves": _attempt(_curves, run),
        "confusion": _attempt(_confusion, run),
        "choice": None if run.choice is None else {**run.choice.to_dict(), "sentence": run.choice.sentence()},
        "structure": _attempt(_structure, run, pairs) if isinstance(pairs, pd.DataFrame) else pairs,
        "audit": audit,
        "explorer": None if isinstance(pairs, pd.DataFrame) else pairs,
    }


def _name(run: Run) -> str:
    """Name of the model, or `auto` with the rung that it chose."""
    if run.choice is not None:
        return f"{run.choice.title.capitalize()}: {run.choice.chosen}"
    return MODEL_NAMES.get(run.settings.model, run.settings.model)


def _names(runs: Sequence[Run]) -> list[str]:
    """Names of the runs, with their data set or fingerprint where they would be the same without."""
    several = len({run.settings.dataset for run in runs}) > 1
    names = [f"{_name(run)} on {run.settings.dataset}" if several else _name(run) for run in runs]
    return [
        f"{name} {run.records[0].fingerprint[:6]}" if names.count(name) > 1 else name
        for name, run in zip(names, runs, strict=True)
    ]


def _comparison(run: Run) -> dict[str, Any]:
    """The run, its backbone, the best plain model and the control whose edges are not learned.

    Those are taken from the same folder of runs, if they have the data, splits and seeds of the run: of several
    settings of a model, the one with the best validation value. `absent` are the others.
    """
    beside, wanted = _beside(run), dict[str, Records | None]()
    if run.rewires and "backbone" in run.settings.options:
        wanted["its backbone"] = _best(beside.values(), [run.settings.options["backbone"]])
    plain = _best(beside.values(), backbones)
    if plain is None or plain[0].fingerprint != run.records[0].fingerprint:
        wanted["best plain model"] = plain
    learned = run.settings.model if run.choice is None else run.choice.learned
    if learned != CONTROL and (run.choice is not None or run.settings.rewiring is not None):
        wanted["control, edges not learned"] = _control(run, beside)
    rows = [_row("this run", _name(run), run.records, None)]
    for fingerprint, found in {each[0].fingerprint: each for each in wanted.values() if each}.items():
        # The backbone may be the best plain model too.
        role = ", ".join(role for role, each in wanted.items() if each and each[0].fingerprint == fingerprint)
        model = found[0].settings["model"]["name"]
        rows.append(_row(role, MODEL_NAMES.get(model, model), found, run.records))
    return {"rows": rows, "absent": [role for role, found in wanted.items() if found is None]}


def _beside(run: Run) -> dict[Path, Records]:
    """Settings in the same folder of runs that have the data, splits and seeds of a run."""
    path, first = run.folder.path, run.records[0]
    found: dict[Path, Records] = {}
    if (path.parents[1].name, path.parent.name) != (run.settings.dataset, run.settings.model):
        return found  # the folder was moved
    for other in sorted(path.parents[3].glob(f"*/{escape(run.settings.dataset)}/*/*")):
        if other.parents[2].name != TRIALS:
            records = {record.replica: record for record in find_records(other) if record.data_hash == first.data_hash}
            if all(record.replica in records for record in run.records):
                found[other] = [records[record.replica] for record in run.records]
    return found


def _best(settings: Iterable[Records], models: Iterable[str]) -> Records | None:
    names = set(models)
    found = [records for records in settings if records[0].settings["model"]["name"] in names]
    return max(found, key=lambda records: Summary.of(record.val for record in records).mean, default=None)


def _control(run: Run, beside: dict[Path, Records]) -> Records | None:
    """Runs whose edges are not learned: of a ladder like that of the run, or of the model with the same settings."""

    def without_name(record: Record) -> dict[str, Any]:
        return {**record.settings, "model": {**record.settings["model"], "name": None}}

    names = {str(record.replica) for record in run.records}
    for path, records in beside.items():
        first = records[0].settings
        if run.choice is None:
            if first["model"]["name"] == CONTROL and without_name(records[0]) == without_name(run.records[0]):
                return records
        elif first["data"]["features"] == run.settings.data.features:
            for choice in read_choices(path):
                if (choice.learned, choice.wary) == (CONTROL, run.choice.wary) and names <= set(choice.runs):
                    return records
    return None


def _row(role: str, name: str, records: Records, reference: Records | None) -> dict[str, Any]:
    """Test and validation metric with a 95 % interval, and the difference of the run to this row."""
    interval, over = mean_interval(records)
    values, gain = [record.test for record in records if record.test is not None], None
    if reference is not None and values:
        paired = compare(reference, records)
        gain = {
            "mean": paired.mean,
            "interval": None if paired.low is None else [paired.low, paired.high],
            "outcome": paired.outcome,
            "verdict": paired.verdict,
        }
    return {
        "role": role,
        "name": name,
        "test": Summary.of(values).to_dict()["mean"],
        "interval": interval,
        "over": over,
        "values": values,
        "gain": gain,
    }


def _curves(run: Run) -> dict[str, Any]:
    """Validation metric of each run with its chosen epoch, and mean losses; thinned out."""
    history = run.history
    curves = []
    for record in run.records[:MOST_CURVES]:
        rows = _thinned(history[(history["split"] == record.split) & (history["seed"] == record.seed)])
        if len(rows) and rows["val"].notna().all():
            curves.append(
                {
                    "name": f"split {record.split}, seed {record.seed}",
                    "epoch": rows["epoch"].tolist(),
                    "val": rows["val"].round(5).tolist(),
                    "chosen": [record.best_epoch, record.val],
                }
            )
    losses = ["train_loss", "val_loss"]
    by_epoch = _thinned(history.pivot_table(index="epoch", columns=["split", "seed"], values=losses).dropna())
    means = {name: by_epoch[name].mean(axis=1).round(5).tolist() for name in losses if name in by_epoch.columns}
    return {"curves": curves, "loss_epoch": by_epoch.index.tolist(), "losses": means}


def _thinned(rows: Any) -> Any:
    """At most `MOST_POINTS` rows, with the first and the last."""
    return rows.iloc[np.unique(np.linspace(0, max(len(rows) - 1, 0), min(len(rows), MOST_POINTS)).round().astype(int))]


def _confusion(run: Run) -> dict[str, Any]:
    counts = run.confusion_matrix()
    if len(counts) > MOST_CLASSES:
        raise UserError(f"there are {len(counts)} classes, and only up to {MOST_CLASSES} are shown as a matrix")
    if not bool(counts.any()):
        raise UserError("these runs have no test nodes")
    return {"classes": class_names(run.data, len(counts)), "counts": counts.tolist()}


def _structure(run: Run, pairs: pd.DataFrame) -> dict[str, Any]:
    """Counts of edges, degrees, matrices of classes and measures of the given and the learned graph.

    `unseen` has the same matrices for edges between nodes that a run did not train on. There every run counts with its
    own graph and split, since the mean graph has learned from the training nodes of all splits.
    """
    data, given, learned = run.data, pairs["given"], pairs["learned"]
    ends = torch.tensor(pairs[["source", "target"]].to_numpy().T)
    before, after = (_with_edges(data, ends[:, torch.tensor(kind.to_numpy())]) for kind in (given, learned))
    old, new = measure(before), measure(after)
    num_classes = class_count(data.y)
    kinds = None if run.settings.rewiring is None else run.measure_pairs()
    counts = {"kept": given & learned, "dropped": given & ~learned, "added": ~given & learned, "candidates": ~given}
    few = num_classes <= MOST_CLASSES
    return {
        "counts": {name: int(some.sum()) for name, some in counts.items()},
        "degrees": degree_histograms(before, after),
        "classes": class_names(data, num_classes),
        "all": {when: _matrices(_classes(graph)) for when, graph in (("before", before), ("after", after))}
        if few
        else None,
        "unseen": _unseen(run, before) if few and kinds is not None else None,
        "measures": [
            {"name": known.heading, "before": old[name], "after": new[name]} for name, known in MEASURES.items()
        ],
        "pairs": [
            {"kind": kind, "name": MEASURES[name].heading, "before": of.before[name], "after": of.after[name]}
            for kind, of in ({} if kinds is None else kinds.kinds).items()
            for name in ("num_edges", *OF_PAIRS)
        ],
        "sentence": "" if kinds is None else kinds.sentence(),
    }


def _with_edges(data: Data, edges: Tensor) -> Data:
    """The labels of a graph with other edges."""
    return Data(edge_index=edges, y=data.y.cpu(), num_nodes=data.num_nodes)


def _classes(graph: Data) -> dict[str, Tensor]:
    """Number of edges between each two classes, and the mean share of each class among the neighbors of a class.

    An edge within a class counts once.
    """
    y, edges, num_classes = graph.y, undirected_edges(graph), class_count(graph.y)
    counts = neighbor_label_counts(y[edges][:, (y[edges] >= 0).all(0)], torch.arange(num_classes), num_classes)
    counts.diagonal().floor_divide_(2)
    rows = neighborhood_distributions(graph, own_label=False)
    usable = (y >= 0) & (rows.sum(1) > 0)
    total = rows.new_zeros(num_classes, rows.shape[1]).index_add(0, y[usable], rows[usable])
    number = y[usable].bincount(minlength=num_classes).clamp(min=1)
    return {"edges": counts, "neighbors": total / number[:, None]}


def _unseen(run: Run, given: Data) -> dict[str, Any]:
    """The matrices for edges between nodes outside the training nodes of a run, mean over the runs."""
    masks, found = by_split(run.data.train_mask.cpu()), dict[str, list[dict[str, Tensor]]]()
    for record, learned in zip(run.records, run.graphs(), strict=True):
        outside = ~masks[:, record.split]
        for when, graph in (("before", given), ("after", learned.cpu())):
            edges = undirected_edges(graph)
            matrices = _classes(_with_edges(run.data, edges[:, outside[edges].all(0)]))
            found.setdefault(when, []).append(matrices)
    return {
        when: _matrices({name: torch.stack([one[name].double() for one in of]).mean(0) for name in of[0]})
        for when, of in found.items()
    }


def _matrices(matrices: dict[str, Tensor]) -> dict[str, list[list[float | None]]]:
    return {
        name: [[none_if_nan(round(value, 4)) for value in row] for row in matrix.tolist()]
        for name, matrix in matrices.items()
    }
