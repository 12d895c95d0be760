"""`gumbel-mpnn train`: train a model on a data set or on own data."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn._util.errors import DataError, UserError
from gumbel_mpnn._util.files import is_standard_output
from gumbel_mpnn._util.launch import is_first
from gumbel_mpnn._util.numbers import counted
from gumbel_mpnn.cli.common import (
    DataRootOption,
    DeviceOption,
    FormatOption,
    OutputFormat,
    OverrideOption,
    QuietOption,
    RunsOption,
    emit,
    in_one_sentence,
    note,
    parse_range,
    preset_in_place,
)
from gumbel_mpnn.cli.finished_runs import folder_of
from gumbel_mpnn.cli.machines import (
    CpusOption,
    GpusOption,
    OnOption,
    StoreOption,
    check_torchrun,
    machines_of,
)
from gumbel_mpnn.cli.outputs import (
    PREDICTIONS,
    ForceOption,
    check_output,
    check_table_file,
    is_table,
    write_predictions,
)
from gumbel_mpnn.cli.own_data import (
    EdgesOption,
    FeaturesOption,
    GraphOption,
    LabelOption,
    NodesOption,
    Source,
)

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gumbel_mpnn.data import GraphFacts
    from gumbel_mpnn.rewiring import Changes
    from gumbel_mpnn.runs import AnySpec, Run, RunSpec
    from gumbel_mpnn.runs.query import Record


@in_one_sentence
def train(
    dataset: Annotated[str | None, typer.Argument(help="Name of a data set (see `gumbel-mpnn data`), or demo.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="auto, mlp, gcn, sage, sage-channels, gat, appnp, drop-edge, sdrf, jaccard, gnn-guard, soft-median,"
            " knn, gumbel-mpnn, frozen or random. auto trains plain and rewired models and chooses one on validation."
            " auto-wary does so for nodes whose edges may have been attacked. Default: auto, or gcn on data sets that"
            " have presets."
        ),
    ] = None,
    splits: Annotated[str | None, typer.Option(help="Splits to use, such as 0-9 or 0,3; all by default.")] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds for each split.", min=1)] = 1,
    preset: Annotated[
        str, typer.Option(help="tuned, paper or another family of presets, none, or a TOML file.")
    ] = "tuned",
    overrides: OverrideOption = None,
    nodes: NodesOption = None,
    edges: EdgesOption = None,
    graph: GraphOption = None,
    label: LabelOption = None,
    features: FeaturesOption = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            help="Number of parts of the graph to train on one after the other, for graphs that do not fit into memory;"
            " torchrun divides them among processes.",
            min=1,
        ),
    ] = None,
    final: Annotated[
        bool,
        typer.Option(
            "--final", help="Train a model to be used: no test nodes, a tenth of the labelled nodes for validation."
        ),
    ] = False,
    epochs_from: Annotated[
        str | None,
        typer.Option(
            help="With --final: train on every labelled node, with the settings and the median best epoch of these runs"
            " (a folder or a fingerprint)."
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(help="File for predictions, .csv or .json, out of fold and by all models; - for standard output."),
    ] = None,
    force: ForceOption = False,
    experiment: Annotated[str, typer.Option(help="Name of the folder inside the runs folder.")] = "train",
    data_root: DataRootOption = None,
    runs: RunsOption = Path("runs"),
    device: DeviceOption = "auto",
    on: OnOption = "local",
    workers: Annotated[
        int | None,
        typer.Option(
            help="Number of processes of this machine that train at once; limited by the number of cores. Default: 1,"
            " or as many as torch has threads if auto trains on a CPU.",
            min=1,
        ),
    ] = None,
    cpus_per_task: CpusOption = None,
    gpus_per_task: GpusOption = None,
    store: StoreOption = None,
    quiet: QuietOption = False,
    format: FormatOption = OutputFormat.text,
) -> None:
    """Train a model on several splits and seeds at once. Finished runs are not trained again.

    In own data, repeated edges are merged into one edge with their mean weight, and self-loops are left out, since
    convolutions add their own. Runs on own data are listed under the name of the file of nodes or of the graph.
    """
    from gumbel_mpnn.data.splits import FINAL
    from gumbel_mpnn.report import choice_table, run_table
    from gumbel_mpnn.runs import (
        Place,
        default_model,
        default_workers,
        describe,
        final_spec,
        fit_any,
        helped,
        missing_preset,
    )
    from gumbel_mpnn.runs.progress import ProgressMonitor
    from gumbel_mpnn.training.device import pick_device
    from gumbel_mpnn.training.processes import job

    machines = machines_of(on, workers or 1, cpus_per_task, gpus_per_task, store)
    check_torchrun(machines)
    own = Source(dataset, nodes, edges, graph, label, features)
    check_table_file("--predictions", predictions)
    check_output("--predictions", predictions, is_table(PREDICTIONS), [*own.files, Path(preset)], force)
    source = own.to_train_on
    if partitions is not None:
        overrides = [*(overrides or ()), f"train.partitions={partitions}"]
    if epochs_from is not None:
        check_like_runs(final, splits, preset)
        records = records_of(epochs_from, runs, model)
        spec: AnySpec = final_spec(source, records, seeds=seeds, overrides=overrides or (), root=data_root)
    else:
        if final:
            check_final(overrides)
        spec = describe(
            source,
            default_model(dataset, None if preset == "none" else preset) if model is None else model,
            splits=None if splits is None else parse_range(splits),
            seeds=seeds,
            preset=None if preset == "none" else preset,
            overrides=[*(overrides or ()), *([f"data.protocol={FINAL}"] if final else [])],
            root=data_root,
        )
    if workers is None and machines.is_local:
        machines = replace(machines, workers=default_workers(spec, device))
    place = Place(runs, experiment, device, models=predictions is not None)
    with job(pick_device(device), _plainest(spec).settings):
        if not is_first():
            fit_any(spec, place)
            return
        preface, warning = _what_was_read(spec), missing_preset(spec)
        with (
            closing(ProgressMonitor(preface=preface, warning=warning, quiet=quiet)) as monitor,
            helped(spec, replace(place, monitor=monitor), machines) as place,
        ):
            run = fit_any(spec, place)
    if predictions is not None:
        write_predictions(run.predictions(), predictions)
    if run.choice is not None:
        note(choice_table(run.choice).render("text") + "\n")
    changes = _changes(run)
    payload = run.to_dict() | ({} if changes is None else {"changes": changes.to_dict()})
    emit(run_table([run]), format, payload, err=is_standard_output(predictions))
    if changes is not None:
        note(changes.sentence())
    if run.choice is not None:
        note(run.choice.sentence())
    note(f"runs are in {run.folder.path}")


def _changes(run: Run) -> Changes | None:
    """Return what the model changed in the graph, or None if it does not rewire or its graphs were deleted."""
    if run.settings.rewiring is None:
        return None
    try:
        return run.changes()
    except DataError as error:
        note(f"the changes of the graph are not shown: {error}")
        return None


def _plainest(asked: AnySpec) -> RunSpec:
    """Return the spec itself, or that of the plainest model of `auto`."""
    from gumbel_mpnn.runs import AutoSpec

    return asked.plainest if isinstance(asked, AutoSpec) else asked


def _what_was_read(asked: AnySpec) -> str:
    """Return a sentence about the data, which shows the user misread columns, or about a preset that was borrowed."""
    from gumbel_mpnn.data import facts_of

    spec = _plainest(asked)
    if not isinstance(spec.dataset, str):
        facts = facts_of(spec.dataset)
        return (
            f"read {counted(facts.num_nodes, 'node')} ({facts.num_unlabelled} without a label),"
            f" {_edges_in_words(spec.dataset, facts, spec.settings.data.undirected)},"
            f" {counted(spec.dataset.num_features, 'feature')}, {facts.num_classes} classes"
        )
    if spec.preset is None:
        return ""
    return preset_in_place(str(spec.asked_preset), spec.settings.dataset, spec.settings.model, spec.preset)


def _edges_in_words(data: Data, facts: GraphFacts, undirected: bool) -> str:
    """Describe how many edges are used, and how many of those in the files were merged."""
    edges = facts.num_edges
    if not undirected:
        edges = data.edge_index.shape[1] - facts.num_duplicate_edges - facts.num_self_loops
    repeats = data.get("edges_listed", 0) - edges - facts.num_self_loops
    merged = f" ({counted(repeats, 'repeat')} merged)" if repeats > 0 else ""
    return f"{counted(edges, 'edge' if undirected else 'directed edge')}{merged}"


def check_final(overrides: Iterable[str] | None) -> None:
    """Raise a `UserError` if the split protocol is set, too."""
    from gumbel_mpnn.config.files import parse_overrides

    if "protocol" in parse_overrides(overrides or ()).get("data", {}):
        raise UserError("--final chooses the split protocol: leave out data.protocol")


def check_like_runs(final: bool, splits: str | None, preset: str) -> None:
    """Raise a `UserError` for options that have no effect with --epochs-from."""
    if not final:
        raise UserError("--epochs-from is for --final: add --final")
    if splits is not None:
        raise UserError("--epochs-from trains on every labelled node, in a single split: leave out --splits")
    if preset != "tuned":
        raise UserError("--epochs-from takes all settings from finished runs: leave out --preset")


def records_of(run: str, runs: Path, model: str | None) -> list[Record]:
    """Read the finished runs called `run`, which must be of the model that the user names, if any."""
    from gumbel_mpnn.nn import models
    from gumbel_mpnn.runs.query import find_records

    folder = folder_of(run, runs)
    records = list(find_records(folder))
    if not records:
        raise UserError(f"there are no finished runs in {folder}: give a folder that `gumbel-mpnn runs` lists")
    found = records[0].settings["model"]["name"]
    if model is not None and (model not in models or models.canonical(model) != found):
        raise UserError(f"the runs in {folder} are of model {found!r}, not {model!r}: leave out --model")
    return records
