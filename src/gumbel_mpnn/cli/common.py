"""What the verbs share: options, files of the user, errors in one sentence, finished runs, and what is written."""

from __future__ import annotations

import functools
import inspect
import re
import reprlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from gumbel_mpnn.util.errors import DataWarning, UserError, is_out_of_memory
from gumbel_mpnn.util.files import check_writable, is_stream, suffix_of, to_json, write_atomically

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data

    from gumbel_mpnn.data.columns import FeatureColumn
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs.run import Run

_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
"""Whether the verb that runs was called with --quiet."""
TABLES = (".csv", ".json")
"""Suffixes of the files that `write_table` writes."""


class OutputFormat(StrEnum):
    """Output format of a result."""

    text = "text"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"

    @property
    def is_for_programs(self) -> bool:
        """Whether the output is read by programs, so that there is one table with names in place of headings."""
        return self in (OutputFormat.json, OutputFormat.csv)


FormatOption = Annotated[OutputFormat, typer.Option("--format", help="Output format.")]
DatasetArgument = Annotated[
    str | None, typer.Argument(help="Name of a data set (see `gumbel-mpnn data`); demo is a generated one.")
]
DataRootOption = Annotated[
    Path | None,
    typer.Option("--data-root", help="Folder of data files, searched before GUMBEL_MPNN_DATA and the cache."),
]
RunsOption = Annotated[
    Path, typer.Option("--runs", envvar="GUMBEL_MPNN_RUNS", help="Folder in which runs are stored.", show_default=True)
]
RunArgument = Annotated[
    str, typer.Argument(help="Folder of a setting or of one run, or the beginning of its fingerprint.")
]
SplitsOption = Annotated[
    str | None, typer.Option("--splits", help="Splits to use, such as 0-9 or 0,3; all by default.")
]
SeedsOption = Annotated[int, typer.Option("--seeds", help="Number of seeds for each split.", min=1)]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda, or auto (a GPU if there is one).")]
OverrideOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="TABLE.NAME=VALUE", help="Override a setting; can be repeated.")
]
OnOption = Annotated[
    str,
    typer.Option(
        "--on",
        help="local; ray for the Ray cluster that RAY_ADDRESS names, or one that is started here; or ray://HOST:PORT.",
    ),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show results, warnings and errors only, no progress and no notes.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]


@dataclass(frozen=True)
class OwnData:
    """Files of the user in place of a data set; the fields are the options of a verb with an argument of this type."""

    nodes: Annotated[Path | None, typer.Option(help="Own data: CSV or Parquet file of nodes.")] = None
    edges: Annotated[
        Path | None, typer.Option(help="Own data: CSV or Parquet file of edges; leave it out for none.")
    ] = None
    graph: Annotated[Path | None, typer.Option(help="Own data: .npz or .graphml file instead of CSV.")] = None
    label: Annotated[
        str | None, typer.Option(help="Own data: name of the label column; not needed for saved graphs.")
    ] = None
    features: Annotated[
        str | None, typer.Option(help="Own data: names of the feature columns, separated by commas.")
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether any option of own data is given."""
        return self != OwnData()

    @property
    def files(self) -> list[Path]:
        """Files that are read, which must not be overwritten."""
        return [file for file in (self.nodes, self.edges, self.graph) if file is not None]

    def to_train_on(self, dataset: str | None, undirected: bool) -> str | Data:
        """Return the name of the data set, or the graph of the user's files, which needs labels.

        Edges are read with their direction if `undirected` is false; npz and GraphML files may state whether edges are
        directed.
        """
        if self._is_by_name(dataset):
            return str(dataset)
        data = self._read(self._columns(), undirected=undirected)
        if data.y is None:
            raise UserError("own data needs --label, the name of the column or attribute of the labels")
        return data

    def to_predict(self, columns: Sequence[FeatureColumn] | None, undirected: bool) -> Data:
        """Return the graph of the user's files, which needs no labels.

        `columns` are those that the models were trained on; None for all numeric columns except the label.
        """
        self._is_by_name(None)  # checks that the options fit together
        if self.features is not None:
            raise UserError("the features are those that the models were trained on: leave out --features")
        data = self._read(columns, undirected=undirected, labels=False)
        if self.label is not None and "label_name" not in data:
            what = "column" if self.graph is None else "node attribute"
            raise UserError(
                f"{self.nodes or self.graph} has no {what} {self.label!r}, which --label names: correct it or leave it"
                " out, since predictions need no labels"
            )
        return data

    def to_measure(self, dataset: str | None, root: Path | None) -> Data:
        """Return a graph without its features, which needs no labels."""
        from gumbel_mpnn.data import load

        if self._is_by_name(dataset):
            return load(str(dataset), root=root, features=False)
        return self._read(self._columns() or False, labels=False)

    def _is_by_name(self, dataset: str | None) -> bool:
        """Return whether a data set is named; raise a `UserError` if there is neither a name nor files, or both."""
        given = [dataset is not None, self.nodes is not None, self.graph is not None]
        if sum(given) != 1 or (self.edges is not None and self.nodes is None):
            raise UserError("give the name of a data set, or own data as --nodes and --edges, or as --graph")
        if (self.label, self.features) != (None, None) and (dataset is not None or self._is_npz):
            raise UserError(
                "--label and --features apply to CSV and GraphML files: leave them out, a data set has its own, and"
                " an npz file has the arrays 'node_labels' and 'node_features'"
            )
        return dataset is not None

    @property
    def _is_npz(self) -> bool:
        return self.graph is not None and suffix_of(self.graph) == ".npz"

    def _read(
        self,
        columns: Sequence[str] | Sequence[FeatureColumn] | Literal[False] | None,
        undirected: bool = True,
        labels: bool = True,
    ) -> Data:
        """Read the user's files; `columns` are those of the features, None for all and False for none."""
        from gumbel_mpnn.data import from_csv, from_graphml, from_npz

        if self.graph is None:
            return from_csv(self.nodes or "", self.edges, self.label, columns, undirected=undirected)
        if self._is_npz:
            return from_npz(self.graph, None if undirected else False, columns is not False, labels)
        return from_graphml(self.graph, self.label, columns)

    def _columns(self) -> list[str] | None:
        return None if self.features is None else [name.strip() for name in self.features.split(",")]


def in_one_sentence(verb: Callable[..., None]) -> Callable[..., None]:
    """Report a `UserError` in one sentence on standard error, without a traceback, and end with exit code 2.

    With an argument `quiet`, the notes of the verb are not shown. An argument `own`, of type `OwnData`, becomes the
    options of own data.
    """
    signature = inspect.signature(verb, eval_str=True)
    own = inspect.signature(OwnData, eval_str=True).parameters if "own" in signature.parameters else {}

    @functools.wraps(verb)
    def guarded(*arguments: Any, **options: Any) -> None:
        if own:
            options["own"] = OwnData(**{name: options.pop(name) for name in own if name in options})
        quiet = _QUIET.set(bool(options.get("quiet", False)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", DataWarning)
                warnings.showwarning = _tell
                verb(*arguments, **options)
        except UserError as error:
            _stop(str(error))
        except BrokenPipeError:  # as after `| head`: typer ends silently
            raise
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            _stop("there is not enough memory for this: use a smaller graph or smaller settings")
        except OSError as error:
            _stop(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
        finally:
            _QUIET.reset(quiet)

    shown = [own.values() if name == "own" else [one] for name, one in signature.parameters.items()]
    guarded.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[one.replace(kind=one.KEYWORD_ONLY) for some in shown for one in some]
    )
    return guarded


def _stop(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(2)


def _tell(message: Warning | str, *_: Any, **__: Any) -> None:
    """Show a warning in one line, even if --quiet is given, without a reference to the source code."""
    typer.echo(f"warning: {message}", err=True)


def note(message: str) -> None:
    """Print a message on standard error, unless --quiet is given."""
    if not _QUIET.get():
        typer.echo(message, err=True)


def emit(table: Table, format: OutputFormat, payload: Any = None, err: bool = False) -> None:
    """Print a result on standard output, or on standard error because another result is there.

    In JSON, a `payload` takes the place of the rows.
    """
    if format is OutputFormat.json and payload is not None:
        typer.echo(to_json(payload, indent=1), err=err)
    else:
        typer.echo(table.render(format.value), err=err)


def parse_range(text: str) -> list[int]:
    """Convert text to numbers: `"0-4,7"` → [0, 1, 2, 3, 4, 7]."""
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part, re.ASCII)
        some = range(int(match[1]), int(match[2] or match[1]) + 1) if match else ()
        if not some:
            raise UserError(f"{reprlib.repr(text)} is not a valid range: write it as 0-9 or 0,2,5")
        numbers.extend(some)
    return numbers


def finished_run(run: str, runs: Path, own: OwnData | None = None, root: Path | None = None) -> Run:
    """Load finished runs; the data of training are read from the user's files if these are given as `own`."""
    from gumbel_mpnn.runs.run import load_run
    from gumbel_mpnn.runs.store import find_setting

    folder = find_setting(run, runs)
    settings = {record.parent.parent for record in folder.glob("*/**/record.json")}
    folder = settings.pop() if len(settings) == 1 else folder
    found = load_run(folder, root=root)
    if own is not None and own.is_given:
        data: Any = own.to_train_on(None, found.settings.data.undirected)
        found = load_run(folder, data=data, root=root)
        _ = found.data  # raises an error if the runs were trained on other data
    return found


def check_output(
    option: str,
    path: Path | None,
    suffixes: Iterable[str],
    *,
    inputs: Iterable[Path] = (),
    run: Run | None = None,
    force: bool = False,
) -> None:
    """Raise a `UserError` if a file cannot or must not be written, before any work is done.

    An existing file is overwritten only with `force`. Never overwritten are files of stored runs, the `inputs`, which
    are read, and the files that `run` was trained on.
    """
    if path is None or is_stream(path):
        return
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder: give the name of a file")
    if suffix_of(path) not in suffixes:
        raise UserError(f"{option} {path} must end in {' or '.join(suffixes)}: give it another ending")
    folder = path.resolve().parent
    check_writable(folder)
    if not path.exists():
        return
    if (folder / "record.json").exists() or any(folder.glob("*/record.json")):
        raise UserError(f"{option} {path} is a file of a stored run: give another name")
    trained_on = {} if run is None else run.trained_on.facts.source_files or {}
    inputs = [*inputs, *(Path(trained_on[name]) for name in ("nodes", "edges", "path") if trained_on.get(name))]
    if any(each.exists() and path.samefile(each) for each in inputs):
        raise UserError(f"{option} {path} is a file that is read: give another name")
    if not force:
        raise UserError(f"{option} {path} exists: give another name, or --force to overwrite it")


def write_table(
    table: pd.DataFrame, path: Path, what: str, format: OutputFormat = OutputFormat.text, digits: str | None = "%.4f"
) -> None:
    """Write a table to a CSV file, with numbers in the form `digits`, or to a JSON file; say that `what` is there.

    The ending of the file tells which; a pipe or standard output, which have none, get what --format says.
    """
    from gumbel_mpnn.report import Table

    if (suffix_of(path) or f".{format}") == ".json":
        content = Table.of(table).render("json") + "\n"
    else:
        content = table.to_csv(index=False, float_format=digits, lineterminator="\n")
    write_atomically(path, content.encode())
    note_of(path, what)


def note_of(path: Path, what: str) -> None:
    """Say which file a result was written to; nothing for standard output, devices and pipes."""
    if not is_stream(path):
        note(f"{what} in {path}")
