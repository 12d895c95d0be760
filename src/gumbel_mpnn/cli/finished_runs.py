"""Finished runs: their index, their folder, and the data they were trained on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gumbel_mpnn._util.errors import MissingDataError, UserError
from gumbel_mpnn.cli.common import note, warn
from gumbel_mpnn.cli.own_data import Source

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gumbel_mpnn.runs.query.index import RunIndex


@contextmanager
def open_index(runs: Path) -> Iterator[RunIndex]:
    """Open the index of a runs folder; records that cannot be read are reported when it is closed."""
    from gumbel_mpnn.runs.query.index import RunIndex

    if not runs.exists():
        note(f"the folder {runs} does not exist yet")
    index = RunIndex(runs)
    try:
        yield index
    finally:
        for sentence in index.damaged:
            warn(sentence)
        index.close()


def folder_of(run: str, runs: Path) -> Path:
    """Return the folder `run` if it exists, else that of the setting whose fingerprint begins with `run`."""
    if Path(run).exists():
        return Path(run)
    with open_index(runs) as index:
        return index.find(run).path


def dataset_of(name: str, digest: str) -> str | None:
    """Return the name that `load` takes for the data set that runs record as `name`; None for own data.

    The sizes of a generated task share its name: of those it is the one whose data hash is `digest`, or else the first.
    """
    from gumbel_mpnn.data import load, specs
    from gumbel_mpnn.training import data_hash

    names = [key for key, spec in specs.items() if spec.name == name]
    if len(names) > 1:
        return next((each for each in names if data_hash(load(each)) == digest), names[0])
    return names[0] if names else None


def training_data(folder: Path, source: Source, root: Path | None) -> Data | None:
    """Return the data that the runs in `folder` were trained on.

    The data are read from the files of the user or, if none are given, by the name of the data set.

    Returns:
        The data, or None if no files are given and the data set is missing or differs from the training data.
    """
    from gumbel_mpnn.config import Settings
    from gumbel_mpnn.runs.query import find_records
    from gumbel_mpnn.runs.reader import read_data
    from gumbel_mpnn.training import data_hash

    found = {record.data_hash: record.settings for record in find_records(folder)}
    if len(found) == 1:
        ((digest, tables),) = found.items()
        settings = Settings.from_dict(tables)
        if source.is_own:
            given: str | Data | None = source.to_train_on(settings.data.undirected)
        else:
            given = _by_name(settings.dataset, digest, root)
        try:
            data = None if given is None else read_data(given, settings.data, root)
        except MissingDataError:
            data = None
        if data is not None and data_hash(data) == digest:
            return data
    if source.is_own:
        raise UserError(f"the runs in {folder} were trained on other data than those given")
    return None


def _by_name(name: str, digest: str, root: Path | None) -> str | None:
    """Return the name of a data set that is here, without downloading anything."""
    from gumbel_mpnn.data import get_spec, locate

    dataset = dataset_of(name, digest)
    return dataset if dataset is not None and locate(get_spec(dataset), root).complete else None
