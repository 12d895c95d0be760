"""`gumbel-mpnn data`: the data sets, which of their files are present, and what is in one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumbel_mpnn.cli import common


@common.in_one_sentence
def data(
    name: Annotated[str | None, typer.Argument(help="Name of a data set to load and describe.")] = None,
    protocol: Annotated[str | None, typer.Option(help="Name of a split protocol, for a data set.")] = None,
    data_root: common.DataRootOption = None,
    format: common.FormatOption = common.OutputFormat.text,
) -> None:
    """List the data sets and which of their files are present, or describe one: size, degrees, classes and splits."""
    if name is not None:
        _show(name, protocol, data_root, format)
        return
    from gumbel_mpnn.data import missing_files, specs
    from gumbel_mpnn.data.public_files import search_roots
    from gumbel_mpnn.report import Table

    rows: list[list[str | int | float | None]] = []
    for each, spec in specs.items():
        missing = missing_files(spec, data_root)
        without = "missing" if missing_files(spec, data_root, features=False) else "without features"
        state = without if missing else "present" if spec.files else "generated"
        listed = ", ".join(file.path for file in missing[:2]) + ", …" * (len(missing) > 2)
        sizes = spec.num_nodes, spec.num_edges, spec.num_features, spec.num_classes
        rows.append([each, state, *sizes, spec.metric, spec.protocols[0], listed])
    columns = ["name", "state", "nodes", "edges", "features", "classes", "metric", "protocol", "missing"]
    common.emit(Table(columns, rows), format)
    common.note(f"searched in {', '.join(map(str, search_roots(data_root)))}")


def _show(name: str, protocol: str | None, root: Path | None, format: common.OutputFormat) -> None:
    """Load a data set and show what is in it."""
    from gumbel_mpnn.data import facts_of, get_spec, load, missing_files
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.settings.presets import list_presets

    spec = get_spec(name)
    if without := bool(missing_files(spec, root)) and not missing_files(spec, root, features=False):
        common.note("the file of features is missing: the graph is shown without features")
    data = load(name, root=root, protocol=protocol, features=not without)
    facts = facts_of(data)
    sizes = {part: data[f"{part}_mask"].sum(0) for part in ("train", "val", "test")}
    payload = {
        "name": spec.name,
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
        **{part: " to ".join(map(str, sorted({int(of.min()), int(of.max())}))) for part, of in sizes.items()},
        "protocols": list(spec.protocols),
        "presets": [f"{model} ({family})" for family, dataset, model in list_presets() if dataset == spec.name],
        "source": spec.source,
        "licence": spec.licence,
    }
    rows = [[key, _flat(value)] for key, value in payload.items()]
    common.emit(Table(["what", "value"], rows), format, payload)


def _flat(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
