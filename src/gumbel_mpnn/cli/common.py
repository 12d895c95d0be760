"""What the verbs share: options, errors in one sentence, results on standard output."""

from __future__ import annotations

import functools
import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer

from gumbel_mpnn._util.errors import DataWarning, UserError

if TYPE_CHECKING:
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs import Preset

MOST_NUMBERS = 10_000
P = ParamSpec("P")
R = TypeVar("R")


class OutputFormat(StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"


FormatOption = Annotated[OutputFormat, typer.Option("--format", help="How to print the result.")]
DataRootOption = Annotated[
    Path | None,
    typer.Option("--data-root", help="Folder of data files, searched before GUMBEL_MPNN_DATA and the cache."),
]
RunsOption = Annotated[
    Path, typer.Option("--runs", envvar="GUMBEL_MPNN_RUNS", help="Folder that keeps the runs.", show_default=True)
]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda, or auto for a GPU if there is one.")]
OverrideOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="TABLE.NAME=VALUE", help="Change a setting; may be repeated.")
]


def in_one_sentence(verb: Callable[P, R]) -> Callable[P, R]:
    """A person's mistake ends the verb with one sentence on standard error, not with a traceback."""

    @functools.wraps(verb)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _warnings_as_notes():
                return verb(*args, **kwargs)
        except UserError as error:
            _stop(f"error: {error}", 2)
        except BrokenPipeError:  # as of `| head`: typer ends without a word
            raise
        except OSError as error:
            _stop(f"error: {error.strerror or error}: {error.filename or ''}".rstrip(": "), 2)
        except KeyboardInterrupt:
            _stop("interrupted: what was finished is kept, and the same command goes on from there", 130)

    return guarded


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """What is odd in a person's data is told in one line, without a place in our code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        show = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, DataWarning):
                note(f"note: {message}")
            else:
                show(message, category, *place, **more)

        warnings.showwarning = tell
        yield


def _stop(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)


def emit(table: Table, format: OutputFormat, payload: Any = None) -> None:
    """Print a result on standard output; as JSON the `payload` where there is one, else the table's rows."""
    if format is OutputFormat.json and payload is not None:
        typer.echo(json.dumps(payload, indent=1))
    else:
        typer.echo(table.render(format.value))


def reject_early_format(format: OutputFormat, subcommand: str) -> None:
    """`--format` belongs behind the subcommand: before it, it would be of no effect."""
    if format is not OutputFormat.text:
        raise UserError(f"write --format after {subcommand!r}")


def note(message: str) -> None:
    """A message beside the result, on standard error."""
    typer.echo(message, err=True)


def preset_in_place(family: str, dataset: str, model: str, found: Preset | None) -> str:
    """What a model takes that has no preset of its own, in a sentence; nothing where it has one."""
    if found is not None and found.model == model:
        return ""
    instead = "plain defaults are" if found is None else "that of its backbone is"
    return f"there is no {family} preset for {model} on {dataset}: {instead} used"


def parse_range(text: str) -> list[int]:
    """`"0-4,7"` → [0, 1, 2, 3, 4, 7]."""
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match:
            raise UserError(f"cannot read the range {text!r}: write it like 0-9 or 0,2,5")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise UserError(f"the range {part.strip()!r} runs backwards")
        if high - low >= MOST_NUMBERS:
            raise UserError(f"the range {part.strip()!r} has more than {MOST_NUMBERS} numbers")
        numbers.extend(range(low, high + 1))
    return numbers


def _print_version(wanted: bool) -> None:
    if wanted:
        from gumbel_mpnn._version import __version__

        typer.echo(f"gumbel-mpnn {__version__}")
        raise typer.Exit


def show_version(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and stop.")
    ] = False,
) -> None:
    """Options of the command itself."""
