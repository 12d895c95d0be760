"""`gumbel-mpnn train`: train a model on a data set or on own data."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn.cli import common
from gumbel_mpnn.cli.own_data import EdgesOption, FeaturesOption, GraphOption, LabelOption, NodesOption, Source
from gumbel_mpnn.util.errors import DataError, UserError, counted
from gumbel_mpnn.util.files import is_standard_output

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gumbel_mpnn.rewiring import Changes
    from gumbel_mpnn.runs.fit import AnySpec
    from gumbel_mpnn.runs.run import Run
    from gumbel_mpnn.runs.spec import RunSpec


@common.in_one_sentence
def train(
    dataset: Annotated[str | None, typer.Argument(help="Name of a data set (see `gumbel-mpnn data`), or demo.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="auto, mlp, gcn, sage, sage-channels, gat, appnp, drop-edge, sdrf, gumbel-mpnn, frozen or random."
            " auto trains plain and rewired models and chooses one on validation; with --set model.wary=true it does so"
            " for nodes whose edges may have been attacked. Default: auto, or gcn on data sets that have presets."
        ),
    ] = None,
    splits: Annotated[str | None, typer.Option(help="Splits to use, such as 0-9 or 0,3; all by default.")] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds for each split.", min=1)] = 1,
    preset: Annotated[
        str, typer.Option(help="tuned, paper or another family of presets, none, or a TOML file.")
    ] = "tuned",
    overrides: common.OverrideOption = None,
    nodes: NodesOption = None,
    edges: EdgesOption = None,
    graph: GraphOption = None,
    label: LabelOption = None,
    features: FeaturesOption = None,
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
    force: common.ForceOption = False,
    experiment: Annotated[str, typer.Option(help="Name of the folder inside the runs folder.")] = "train",
    data_root: common.DataRootOption = None,
    runs: common.RunsOption = Path("runs"),
    device: common.DeviceOption = "auto",
    on: common.OnOption = "local",
    workers: Annotated[
        int | None,
        typer.Option(
            help="Number of processes of this machine that train at once; limited by the number of cores. Default: 1,"
            " or as many as torch has threads if auto trains on a CPU.",
            min=1,
        ),
    ] = None,
    quiet: common.QuietOption = False,
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """Train a model on several splits and seeds at once. Finished runs are not trained again.

    In own data, repeated edges are merged into one edge with their mean weight, and self-loops are left out, since
    convolutions add their own. Runs on own data are listed under the name of the file of nodes or of the graph.
    """
    from gumbel_mpnn.report import choice_table, run_table
    from gumbel_mpnn.runs.fit import (
        check_model,
        default_model,
        default_workers,
        describe,
        missing_preset,
        train_spec,
    )
    from gumbel_mpnn.runs.progress import ProgressMonitor
    from gumbel_mpnn.runs.session import Session
    from gumbel_mpnn.runs.spec import asks_for_undirected
    from gumbel_mpnn.runs.workers import LOCAL
    from gumbel_mpnn.runs.workers import workers as workers_of

    source, family = Source(dataset, nodes, edges, graph, label, features), None if preset == "none" else preset
    overrides = overrides or []
    common.check_output("--predictions", predictions, common.TABLES, inputs=[*source.files, Path(preset)], force=force)
    if epochs_from is not None:
        if not final or splits is not None or preset != "tuned":
            raise UserError("--epochs-from takes --final and all settings: leave out --splits and --preset")
        spec: AnySpec = _like(epochs_from, runs, source, model, seeds=seeds, overrides=overrides, root=data_root)
    else:
        model = check_model(default_model(dataset, family) if model is None else model)  # before the data are read
        spec = describe(
            source.to_train_on(asks_for_undirected(family, overrides)),
            model,
            splits=None if splits is None else common.parse_range(splits),
            seeds=seeds,
            preset=family,
            overrides=_of_final(overrides) if final else overrides,
            root=data_root,
        )
    count = workers or (default_workers(spec, device) if on == LOCAL else 1)
    monitor = ProgressMonitor(preface=_what_was_read(spec), warning=missing_preset(spec), quiet=quiet)
    with closing(monitor), workers_of(count, on, device) as several:
        needs_models = predictions is not None
        session = Session(runs, experiment, device, models=needs_models, monitor=monitor, workers=several)
        run = train_spec(spec, session)
    if predictions is not None:
        table = run.predictions()
        common.write_table(table, predictions, f"predictions of {counted(len(table), 'node')} are")
    if run.choice is not None:
        common.note(choice_table(run.choice).render("text") + "\n")
    changes = _changes(run)
    payload = run.to_dict() | ({} if changes is None else {"changes": changes.to_dict()})
    common.emit(run_table([run]), format, payload, err=is_standard_output(predictions))
    if changes is not None:
        common.note(changes.sentence())
    if run.choice is not None:
        common.note(run.choice.sentence())
    common.note(f"runs are in {run.folder.path}")


def _of_final(overrides: list[str]) -> list[str]:
    """Overrides with the split protocol of --final."""
    from gumbel_mpnn.data.splits import FINAL
    from gumbel_mpnn.settings.files import parse_overrides

    if "protocol" in parse_overrides(overrides).get("data", {}):
        raise UserError("--final chooses the split protocol: leave out data.protocol")
    return [*overrides, f"data.protocol={FINAL}"]


def _like(
    run: str, runs: Path, source: Source, model: str | None, *, seeds: int, overrides: list[str], root: Path | None
) -> RunSpec:
    """Describe runs on every labelled node that are like finished runs, which must be of the model that is named."""
    from gumbel_mpnn.nn import models
    from gumbel_mpnn.runs.fit import final_spec

    finished = common.finished_run(run, runs)
    found = finished.settings.model
    if model is not None and (model not in models or models.canonical(model) != found):
        raise UserError(f"the runs in {finished.folder.path} are of model {found!r}, not {model!r}: leave out --model")
    data = source.to_train_on(finished.settings.data.undirected)
    return final_spec(data, finished.records, seeds=seeds, overrides=overrides, root=root)


def _changes(run: Run) -> Changes | None:
    """What the model changed in the graph, or None if it does not rewire or its graphs were deleted."""
    if run.settings.rewiring is None:
        return None
    try:
        return run.changes()
    except DataError as error:
        common.note(f"the changes of the graph are not shown: {error}")
        return None


def _what_was_read(asked: AnySpec) -> str:
    """A sentence about own data, which shows the user misread columns, or about a preset that was borrowed."""
    from gumbel_mpnn.data import facts_of
    from gumbel_mpnn.runs.auto import AutoSpec

    spec = asked.plainest if isinstance(asked, AutoSpec) else asked
    if not isinstance(spec.dataset, str):
        facts = facts_of(spec.dataset)
        return (
            f"read {counted(facts.num_nodes, 'node')} ({facts.num_unlabelled} without a label),"
            f" {_edges_in_words(spec.dataset, spec.settings.data.undirected)},"
            f" {counted(spec.dataset.num_features, 'feature')}, {facts.num_classes} classes"
        )
    if spec.preset is None or spec.preset.model == spec.settings.model:
        return ""
    where = f"{spec.settings.model} on {spec.settings.dataset}"
    return f"there is no {spec.asked_preset} preset for {where}: the preset of its backbone is used"


def _edges_in_words(data: Data, undirected: bool) -> str:
    """Describe how many edges are used, and how many of those in the files were merged."""
    from gumbel_mpnn.data import facts_of

    facts = facts_of(data)
    edges = facts.num_edges
    if not undirected:
        edges = data.edge_index.shape[1] - facts.num_duplicate_edges - facts.num_self_loops
    repeats = data.get("edges_listed", 0) - edges - facts.num_self_loops
    merged = f" ({counted(repeats, 'repeat')} merged)" if repeats > 0 else ""
    return f"{counted(edges, 'edge' if undirected else 'directed edge')}{merged}"
