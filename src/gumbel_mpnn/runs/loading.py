"""Loads finished runs from their folder, with the data that they were trained on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.data import get_spec, load, locate, specs
from gumbel_mpnn.data.columns import FeatureColumn
from gumbel_mpnn.data.networks import from_graphml
from gumbel_mpnn.data.npz import from_npz
from gumbel_mpnn.data.tables import from_csv
from gumbel_mpnn.graph import without_candidates
from gumbel_mpnn.runs.choice import read_choices
from gumbel_mpnn.runs.listing import find_setting
from gumbel_mpnn.runs.reader import read_data
from gumbel_mpnn.runs.record import RECORD, Record, find_records
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.runs.training_data import TrainingData, read_facts
from gumbel_mpnn.settings import Settings
from gumbel_mpnn.settings.plugins import load_plugins
from gumbel_mpnn.training import data_hash
from gumbel_mpnn.util.errors import DataError, UserError


def load_run(
    run: str | Path, *, data: Data | None = None, runs: str | Path = "runs", root: str | Path | None = None
) -> Run:
    """Load finished runs, which then predict and rewire as after `fit`.

    The data that the runs were trained on are read when they are first needed: by name for a data set, from the files
    of the user if these are still there, or from `data`. Other graphs can be predicted and rewired without them.

    Args:
        run: Folder of a setting, folder of one run, or the beginning of a fingerprint, as `gumbel-mpnn runs` lists.
        data: The graph that the runs were trained on.
        runs: Folder of the runs, in which fingerprints are looked up.
        root: Folder with the files of the data sets.
    """
    load_plugins()
    folder = find_setting(run, runs)
    records = tuple(find_records(folder))
    if not records:
        raise UserError(f"there is no finished run in {folder}: give the folder of a setting, with its runs")
    first = records[0]
    if any(record.fingerprint != first.fingerprint for record in records):
        raise UserError(f"the runs in {folder} have different settings: give the folder of one setting")
    path = folder.parent if (folder / RECORD).exists() else folder
    chosen = {str(record.replica) for record in records}
    choice = next((choice for choice in read_choices(path) if chosen <= set(choice.runs)), None)
    settings, facts = Settings.from_dict(first.settings), read_facts(path)
    files = None if facts is None else facts.source_files
    read = partial(_training_data, path, first, settings, data, files, root)  # unlike a closure, it can be pickled
    return Run(settings, first.metric, records, TrainingData(read, facts), SettingFolder(path), choice)


def dataset_of(name: str, digest: str) -> str | None:
    """Return the name that `load` takes for the data set that runs record as `name`; None for own data.

    The sizes of a generated task share its name: of those it is the one whose data hash is `digest`, or else the first.
    """
    names = [key for key, spec in specs.items() if spec.name == name]
    if len(names) > 1:
        return next((each for each in names if data_hash(load(each)) == digest), names[0])
    return names[0] if names else None


def _training_data(
    path: Path,
    record: Record,
    settings: Settings,
    given: Data | None,
    files: Mapping[str, Any] | None,
    root: str | Path | None,
) -> Data:
    """Read the data that the runs were trained on, and compare their hash with that of the record."""
    if given is not None:
        found = read_data(given, settings.data, root)
        for each in (found, without_candidates(found)):  # settings can ask for other candidates than those of the data
            if data_hash(each) == record.data_hash:
                return each
        raise DataError(f"the runs in {path} were trained on other data than those given")
    name = dataset_of(settings.dataset, record.data_hash)
    if name is not None and locate(get_spec(name), root).complete:
        found = read_data(name, settings.data, root)
        if data_hash(found) == record.data_hash:
            return found
    if files is not None:
        try:
            found = read_data(read_again(files), settings.data, root)
        except DataError as error:
            raise DataError(f"the data that the runs in {path} were trained on cannot be read again: {error}") from None
        if data_hash(found) == record.data_hash:
            return found
        raise DataError(
            f"the files that the runs in {path} were trained on have changed: give the training data as"
            " load_run(..., data=...), or a graph to predict"
        )
    raise DataError(
        f"the data that the runs in {path} were trained on are not known: give them as load_run(..., data=...), or give"
        " a graph to predict"
    )


def read_again(source: Mapping[str, Any]) -> Data:
    """Read a graph by its `data.source_files`, which `from_csv`, `from_npz` and `from_graphml` set."""
    undirected = source["undirected"]
    features = _features(source["features"])
    match source["reader"]:
        case "csv":
            columns = {name: source[name] for name in ("label", "id", "source", "target")}
            return from_csv(source["nodes"], source["edges"], features=features, **columns, undirected=undirected)
        case "npz":
            return from_npz(source["path"], undirected, features is not False)
        case _:
            return from_graphml(source["path"], source["label"], features)


def _features(described: list[Any] | None) -> Any:
    """Argument `features` of a reader: None for all, False for none, else names or columns."""
    if described is None:
        return None
    return [FeatureColumn.from_dict(each) if isinstance(each, Mapping) else each for each in described] or False
