"""Options, error messages and output shared by all verbs."""

from __future__ import annotations

import functools
import re
import reprlib
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer
from typer.core import TyperGroup

from gumbel_mpnn._util.errors import DataWarning, UserError, is_out_of_memory
from gumbel_mpnn._util.json_text import to_json
from gumbel_mpnn._util.launch import is_first

if TYPE_CHECKING:
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs import Preset

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
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda, or auto (a GPU if there is one).")]
OverrideOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="TABLE.NAME=VALUE", help="Override a setting; can be repeated.")
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show results, warnings and errors only, no progress and no notes.")
]


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
            # That another process has ended cannot be said by that process.
            lost = type(error).__name__ == "LostProcessError"
            _stop(f"error: {error}" if is_first() or lost else "", 2)
        except BrokenPipeError:  # as after `| head`: typer ends silently
            raise
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            _stop("error: there is not enough memory for this: use a smaller graph or smaller settings", 2)
        except OSError as error:
            _stop(f"error: {error.strerror or error}: {error.filename or ''}".rstrip(": "), 2)
        finally:
            _QUIET.reset(quiet)

    return guarded


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show each `DataWarning` in one line, even if --quiet is given, without a reference to the source code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        show = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, DataWarning):
                warn(str(message))
            else:
                show(message, category, *place, **more)

        warnings.showwarning = tell
        yield


def _stop(message: str, code: int) -> NoReturn:
    if message:
        typer.echo(message, err=True)
    raise typer.Exit(code)


def emit(table: Table, format: OutputFormat, payload: Any = None, err: bool = False) -> None:
    """Print a result on standard output, or on standard error because another result is there.

    In JSON, a `payload` takes the place of the rows.
    """
    if format is OutputFormat.json and payload is not None:
        typer.echo(to_json(payload, indent=1), err=err)
    else:
        typer.echo(table.render(format.value), err=err)


def reject_early_options(context: typer.Context) -> None:
    """Raise a `UserError` for an option before the subcommand, where it would have no effect."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise UserError(f"write --{name.replace('_', '-')} after {context.invoked_subcommand!r}")


def note(message: str) -> None:
    """Print a message on standard error, unless --quiet is given."""
    if not _QUIET.get() and is_first():
        typer.echo(message, err=True)


def warn(message: str) -> None:
    """Print a warning on standard error, even if --quiet is given."""
    if is_first():
        typer.echo(f"warning: {message}", err=True)


def preset_in_place(family: str, dataset: str, model: str, found: Preset) -> str:
    """Return a sentence if the preset that was found is not the model's own but that of its backbone; else empty."""
    if found.model == model:
        return ""
    return f"there is no {family} preset for {model} on {dataset}: the preset of its backbone is used"


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


def parse_duration(text: str) -> float:
    """Convert text to seconds: `"600"`, `"10m"` → 600; the units are s, m, h and d."""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([smhd]?)\s*", text, re.ASCII)
    if match is None or not float(match[1]):
        raise UserError(f"{reprlib.repr(text)} is not a time above 0: write it as 600, 90s, 10m or 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


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
