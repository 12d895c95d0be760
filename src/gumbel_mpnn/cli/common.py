"""What the verbs share: options, error messages, finished runs, and files that are written."""

from __future__ import annotations

import functools
import re
import reprlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer
from typer.core import TyperGroup

from gumbel_mpnn.util.errors import DataWarning, UserError, is_out_of_memory
from gumbel_mpnn.util.files import check_writable, is_stream, suffix_of, to_json, write_atomically

if TYPE_CHECKING:
    import pandas as pd

    from gumbel_mpnn.cli.own_data import Source
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs.run import Run

MOST_NUMBERS = 10_000
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
"""Whether the verb that runs was called with --quiet."""
P = ParamSpec("P")
R = TypeVar("R")
# Newer versions of typer contain a copy of click, older ones import it; this finds the class in both cases.
_UsageError: Any = typer.BadParameter.__mro__[1]
INTERRUPTED = 130
"""Exit code into which typer turns a `KeyboardInterrupt`."""


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
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda, or auto (a GPU if there is one).")]
OverrideOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="TABLE.NAME=VALUE", help="Override a setting; can be repeated.")
]
OnOption = Annotated[
    str,
    typer.Option(
        "--on",
        help="local; ray for a Ray cluster that is started here, or that RAY_ADDRESS names; or one that is running:"
        " ray:auto, ray:HOST:PORT or ray://HOST:PORT.",
    ),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show results, warnings and errors only, no progress and no notes.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]


def in_one_sentence(verb: Callable[P, R]) -> Callable[P, R]:
    """Report a `UserError` in one sentence on standard error, without a traceback, and end with exit code 2.

    With an argument `quiet`, the notes of the verb are not shown.
    """

    @functools.wraps(verb)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        quiet = _QUIET.set(bool(kwargs.get("quiet", False)))
        try:
            with _warnings_in_one_line():
                return verb(*args, **kwargs)
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

    return guarded


def _stop(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(2)


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show each `DataWarning` in one line, even if --quiet is given, without a reference to the source code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        show = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, DataWarning):
                typer.echo(f"warning: {message}", err=True)
            else:
                show(message, category, *place, **more)

        warnings.showwarning = tell
        yield


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
        match = re.fullmatch(r"\s*(\d{1,18})(?:-(\d{1,18}))?\s*", part)
        if not match:
            raise UserError(f"{reprlib.repr(text)} is not a valid range: write it as 0-9 or 0,2,5")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise UserError(f"the range {part.strip()!r} is backwards")
        if high - low >= MOST_NUMBERS:
            raise UserError(f"the range {part.strip()!r} has more than {MOST_NUMBERS} numbers")
        numbers.extend(range(low, high + 1))
    return numbers


def finished_run(run: str, runs: Path, source: Source | None = None, root: Path | None = None) -> Run:
    """Load finished runs; the data of training are read from the user's files if these are given as `source`."""
    from gumbel_mpnn.runs.records import find_setting
    from gumbel_mpnn.runs.run import load_run

    folder = find_setting(run, runs)
    settings = {record.parent.parent for record in folder.glob("*/**/record.json")}
    folder = settings.pop() if len(settings) == 1 else folder
    found = load_run(folder, root=root)
    if source is None or not source.is_own:
        return found
    data = source.to_train_on(found.settings.data.undirected)
    found = load_run(folder, data=None if isinstance(data, str) else data, root=root)
    _ = found.data  # raises an error if the runs were trained on other data
    return found


def source_files(run: Run) -> list[Path]:
    """Files of the user that runs were trained on, which must not be overwritten."""
    files = run.trained_on.facts.source_files or {}
    return [Path(files[name]) for name in ("nodes", "edges", "path") if files.get(name)]


def check_output(
    option: str,
    path: Path | None,
    suffixes: Iterable[str] = (),
    *,
    inputs: Iterable[Path | None] = (),
    force: bool = False,
    format: OutputFormat = OutputFormat.text,
) -> None:
    """Raise a `UserError` if a file cannot or must not be written, before any work is done.

    An existing file is overwritten only with `force`; files of stored runs and `inputs`, which are read, never are.
    `format` is the --format of a verb that writes its result to the file in place of printing it.
    """
    if path is None or is_stream(path):
        return
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder: give the name of a file")
    if suffixes and suffix_of(path) not in suffixes:
        raise UserError(f"{option} {path} must end in {' or '.join(suffixes)}: give it another ending")
    if format is not OutputFormat.text and suffix_of(path) != f".{format}":
        raise UserError(f"{option} {path} is written by its ending, which is not --format {format}: leave out --format")
    check_writable(path.resolve().parent)
    if not path.exists():
        return
    folder = path.resolve().parent
    if (folder / "record.json").exists() or any(folder.glob("*/record.json")):
        raise UserError(f"{option} {path} is a file of a stored run: give another name")
    if any(each is not None and each.exists() and path.samefile(each) for each in inputs):
        raise UserError(f"{option} {path} is a file that is read: give another name")
    if not force:
        raise UserError(f"{option} {path} exists: give another name, or --force to overwrite it")


TABLES = (".csv", ".json")
"""Suffixes of the files that `write_table` writes."""


def suffix_to_write(path: Path, format: OutputFormat = OutputFormat.text) -> str:
    """Suffix that tells the form of a file; standard output, devices and pipes have that of --format, or `.csv`."""
    if suffix_of(path) or not is_stream(path):
        return suffix_of(path)
    return ".csv" if format is OutputFormat.text else f".{format}"


def write_table(
    table: pd.DataFrame, path: Path, what: str, format: OutputFormat = OutputFormat.text, digits: str | None = "%.4f"
) -> None:
    """Write a table to a CSV file, with numbers in the form `digits`, or to a JSON file; say that `what` is there."""
    if suffix_to_write(path, format) == ".json":
        columns = list(map(str, table.columns))
        content = to_json([dict(zip(columns, row, strict=True)) for row in rows_of(table)], indent=1) + "\n"
    else:
        content = table.to_csv(index=False, float_format=digits, lineterminator="\n")
    write_atomically(path, content.encode())
    note_of(path, what)


def note_of(path: Path, what: str) -> None:
    """Say which file a result was written to; nothing for standard output, devices and pipes."""
    if not is_stream(path):
        note(f"{what} in {path}")


def rows_of(table: pd.DataFrame) -> list[list[str | int | float | None]]:
    """Return the rows of a table as plain values, with None in place of NaN."""
    rows = table.astype(object).itertuples(index=False, name=None)
    return [[None if value != value else value for value in row] for row in rows]


def reject_early_options(context: typer.Context) -> None:
    """Raise a `UserError` for an option before the subcommand, where it would have no effect."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise UserError(f"write --{name.replace('_', '-')} after {context.invoked_subcommand!r}")


def _print_version(wanted: bool) -> None:
    if wanted:
        from gumbel_mpnn._version import __version__

        typer.echo(f"gumbel-mpnn {__version__}")
        raise typer.Exit


def show_version(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Handle the options of the command itself."""


class OneSentenceGroup(TyperGroup):
    """Group of commands that reports a usage error or an interrupt in one line, without the usage text."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command and exit, unless `standalone_mode` is false."""
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except _UsageError as error:
            if type(error).show is not _UsageError.show:  # no verb was given, which is not an error: the help is shown
                error.show()
            else:
                typer.echo(f"error: {_sentence(error)}", err=True)
            sys.exit(error.exit_code)
        except typer.Abort:
            sys.exit(1)
        if code == INTERRUPTED:
            typer.echo("interrupted: finished runs are stored; repeat the command to continue", err=True)
        sys.exit(code if isinstance(code, int) else 0)


def _sentence(error: Any) -> str:
    """Convert `No such command 'trian'. Did you mean 'train'?` to `no such command 'trian': did you mean 'train'?`."""
    text = " ".join(error.format_message().split()).removesuffix(".")
    text = re.sub(r"(^|\. )([A-Z])", lambda match: (match[1] and ": ") + match[2].lower(), text)
    return f"{text} (see {error.ctx.command_path} --help)" if error.ctx is not None else text
