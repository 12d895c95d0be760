"""`gumbel-mpnn train`: train a model on a data set or on own data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn.cli import common
from gumbel_mpnn.util.errors import UserError, counted
from gumbel_mpnn.util.files import is_standard_output

if TYPE_CHECKING:
    from torch_geometric.data import Data


@common.in_one_sentence
def train(
    dataset: common.DatasetArgument = None,
    *,
    model: Annotated[
        str | None,
        typer.Option(
            help="auto, mlp, gcn, sage, sage-channels, gat, appnp, drop-edge, sdrf, gumbel-mpnn, frozen or random."
            " auto trains plain and rewired models and chooses one on validation; with --set model.wary=true it does so"
            " for nodes whose edges may have been attacked. Default: auto, or gcn on data sets that have presets."
        ),
    ] = None,
    splits: common.SplitsOption = None,
    seeds: common.SeedsOption = 1,
    preset: Annotated[
        str, typer.Option(help="tuned, paper or another family of presets, none, or a TOML file.")
    ] = "tuned",
    overrides: common.OverrideOption = None,
    own: common.OwnData,
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
    from gumbel_mpnn.data.splits import FINAL
    from gumbel_mpnn.report import choice_table, run_table
    from gumbel_mpnn.runs import fit
    from gumbel_mpnn.runs.spec import asks_for_undirected

    family, overrides = None if preset == "none" else preset, overrides or []
    common.check_output("--predictions", predictions, common.TABLES, inputs=[*own.files, Path(preset)], force=force)
    if epochs_from is not None:
        if not final or splits is not None or preset != "tuned" or model is not None:
            raise UserError("--epochs-from takes --final and all settings: leave out --model, --splits and --preset")
        like = common.finished_run(epochs_from, runs)
        undirected = like.settings.data.undirected
        data = own.to_train_on(dataset, undirected)
        spec: fit.AnySpec = fit.final_spec(data, like.records, seeds=seeds, overrides=overrides, root=data_root)
    else:
        model = fit.check_model(fit.default_model(dataset, family) if model is None else model)  # before data are read
        undirected = asks_for_undirected(family, overrides)
        data = own.to_train_on(dataset, undirected)
        spec = fit.describe(
            data,
            model,
            splits=None if splits is None else common.parse_range(splits),
            seeds=seeds,
            preset=family,
            overrides=[*overrides, *([f"data.protocol={FINAL}"] if final else [])],
            root=data_root,
        )
    if not isinstance(data, str):
        common.note(_what_was_read(data, undirected))
    run = fit.train_spec(spec, runs, experiment, device, workers=workers, on=on, progress=not quiet)
    if predictions is not None:
        table = run.predictions()
        common.write_table(table, predictions, f"predictions of {counted(len(table), 'node')} are")
    if run.choice is not None:
        common.note(choice_table(run.choice).render("text") + "\n")
    changes = None if run.settings.rewiring is None else run.changes()
    payload = run.to_dict() | ({} if changes is None else {"changes": changes.to_dict()})
    common.emit(run_table([run]), format, payload, err=is_standard_output(predictions))
    for told in (changes, run.choice):
        if told is not None:
            common.note(told.sentence())
    common.note(f"runs are in {run.folder.path}")


def _what_was_read(data: Data, undirected: bool) -> str:
    """A sentence about own data, which shows the user misread columns."""
    from gumbel_mpnn.data import facts_of

    facts = facts_of(data)
    edges, noun = facts.num_edges, "edge"
    if not undirected:
        edges, noun = data.edge_index.shape[1] - facts.num_duplicate_edges - facts.num_self_loops, "directed edge"
    repeats = data.get("edges_listed", 0) - edges - facts.num_self_loops
    merged = f" ({counted(repeats, 'repeat')} merged)" if repeats > 0 else ""
    return (
        f"read {counted(facts.num_nodes, 'node')} ({facts.num_unlabelled} without a label), {counted(edges, noun)}"
        f"{merged}, {counted(data.num_features, 'feature')}, {facts.num_classes} classes"
    )
