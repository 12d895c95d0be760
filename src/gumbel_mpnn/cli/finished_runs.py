"""Finished runs: their index, their folder, and the data they were trained on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.cli.common import note, warn
from gumbel_mpnn.cli.own_data import Source

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gumbel_mpnn.runs.query.index import RunIndex


RunsArgument = Annotated[
    str,
    typer.Argument(
        help="Folder of a run, folder of a setting, or the beginning of its fingerprint. Several runs are averaged."
    ),
]


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


def files_of(folder: Path) -> list[Path]:
    """Files of the user that the runs in `folder` were trained on, which must not be overwritten."""
    from gumbel_mpnn.runs.training_data import read_facts

    found = [read_facts(each) for each in (folder, folder.parent)]
    files = [facts.source_files for facts in found if facts is not None and facts.source_files]
    return [Path(each[name]) for each in files for name in ("nodes", "edges", "path") if each.get(name)]


def training_data(folder: Path, source: Source, root: Path | None) -> Data | None:
    """Return the data that the runs in `folder` were trained on.

    The data are read from the files of the user or, if none are given, by the name of the data set or from the files
    that were read for training. They are None if no files are given and the data are missing or differ from the
    training data.
    """
    from gumbel_mpnn.runs import load_run

    try:
        return load_run(folder, data=given_data(folder, source), root=root).data
    except DataError:
        if source.is_own:
            raise
        return None


def given_data(folder: Path, source: Source) -> Data | None:
    """Read the files that the user gives as the training data of the runs in `folder`; None if there are none."""
    from gumbel_mpnn.config import Settings
    from gumbel_mpnn.runs.query import find_records

    record = next(find_records(folder), None)
    if not source.is_own or record is None:
        return None
    given = source.to_train_on(Settings.from_dict(record.settings).data.undirected)
    return None if isinstance(given, str) else given
