"""Usage errors and interrupts, reported in one sentence."""

from __future__ import annotations

import re
import sys
from typing import Any

import typer
from typer.core import TyperGroup

# Newer versions of typer contain a copy of click, older ones import it; this finds the class in both cases.
_UsageError: Any = typer.BadParameter.__mro__[1]
INTERRUPTED = 130
"""Exit code into which typer turns a `KeyboardInterrupt`."""


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
