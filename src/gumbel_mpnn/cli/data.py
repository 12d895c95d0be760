"""`gumbel-mpnn data`: the data sets, and which of their files are present."""

from __future__ import annotations

from typing import Annotated

import typer

from gumbel_mpnn.cli.common import (
    DataRootOption,
    FormatOption,
    OutputFormat,
    emit,
    in_one_sentence,
    note,
    reject_early_options,
)

app = typer.Typer(help="List the data sets and which of their files are present.", invoke_without_command=True)


@app.callback()
@in_one_sentence
def data(context: typer.Context, data_root: DataRootOption = None, format: FormatOption = OutputFormat.text) -> None:
    """List all data sets with the state of their files."""
    if context.invoked_subcommand is not None:
        reject_early_options(context)
        return
    from gumbel_mpnn.data import GeneratedSpec, locate, specs
    from gumbel_mpnn.data.files import search_roots
    from gumbel_mpnn.report import Table

    rows: list[list[str | int | float | None]] = []
    for name, spec in specs.items():
        presence = locate(spec, data_root)
        if isinstance(spec, GeneratedSpec):
            state = "generated"
        else:
            state = "present" if presence.complete else "without features" if presence.without_features else "missing"
        rows.append(
            [
                name,
                state,
                spec.num_nodes,
                spec.num_edges,
                spec.num_features,
                spec.num_classes,
                spec.metric,
                spec.protocols[0],
                ", ".join(file.path for file in presence.missing[:2]) + (", …" if len(presence.missing) > 2 else ""),
            ]
        )
    columns = ["name", "state", "nodes", "edges", "features", "classes", "metric", "protocol", "missing"]
    emit(Table(columns, rows), format)
    note(f"searched in {', '.join(map(str, search_roots(data_root)))}")


@app.command()
@in_one_sentence
def show(
    name: Annotated[str, typer.Argument(help="Name of a data set.")],
    data_root: DataRootOption = None,
    protocol: Annotated[str | None, typer.Option(help="Name of a split protocol.")] = None,
    attack: Annotated[str, typer.Option(help="Name of an attack, for data sets that come with attacks.")] = "",
    features: Annotated[bool, typer.Option(help="Whether to read the features.")] = True,
    format: FormatOption = OutputFormat.text,
) -> None:
    """Load a data set and show its size, degrees, classes and splits."""
    from gumbel_mpnn.config.registry import normal_name
    from gumbel_mpnn.data import check, get_spec, load, locate
    from gumbel_mpnn.report import Table

    spec = get_spec(name)
    presence = locate(spec, data_root)
    if features and not presence.complete and presence.without_features:
        note("the file of features is missing: the graph is shown without features")
        features = False
    data = load(name, root=data_root, protocol=protocol, features=features, attack=attack)
    facts = check(data, require_all_classes=False)
    masks = {part: data[f"{part}_mask"].sum(0) for part in ("train", "val", "test")}
    splits = {
        part: int(sizes[0]) if (sizes == sizes[0]).all() else f"{int(sizes.min())} to {int(sizes.max())}"
        for part, sizes in masks.items()
    }
    payload = {
        "name": normal_name(name),
        "metric": spec.metric,
        "nodes": facts.num_nodes,
        "edges": facts.num_edges,
        "features": None if data.x is None else int(data.x.shape[1]),
        "classes": facts.num_classes,
        "class_sizes": data.y[data.y >= 0].bincount().tolist(),
        "degree_min": facts.degree_min,
        "degree_mean": facts.degree_mean,
        "degree_max": facts.degree_max,
        "isolated_nodes": facts.num_isolated,
        "self_loops": facts.num_self_loops,
        "unlabelled": facts.num_unlabelled,
        "protocol": data.protocol,
        "splits": data.train_mask.shape[1],
        **splits,
        "protocols": list(spec.protocols),
        **({"attack": attack or "none", "attacks": list(spec.attacks)} if spec.attacks else {}),
        "source": spec.source,
        "licence": spec.licence,
    }
    rows = [[key, _flat(value)] for key, value in payload.items()]
    emit(Table(["what", "value"], rows), format, payload)


def _flat(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.2f}" if isinstance(value, float) else str(value)
