"""The command `gumbel-mpnn`, with one module for each verb."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gumbel_mpnn._version import __version__
from gumbel_mpnn.cli.audit import audit
from gumbel_mpnn.cli.data import data
from gumbel_mpnn.cli.demo import demo
from gumbel_mpnn.cli.doctor import doctor
from gumbel_mpnn.cli.measure import measure
from gumbel_mpnn.cli.predict import predict
from gumbel_mpnn.cli.report import report
from gumbel_mpnn.cli.rewire import rewire
from gumbel_mpnn.cli.runs import app as runs
from gumbel_mpnn.cli.train import train
from gumbel_mpnn.cli.tune import tune

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
                sys.exit(error.exit_code)
            # `No such command 'trian'. Did you mean 'train'?` becomes `no such command 'trian': did you mean 'train'?`.
            text = " ".join(error.format_message().split()).removesuffix(".")
            text = re.sub(r"(^|\. )([A-Z])", lambda match: (match[1] and ": ") + match[2].lower(), text)
            where = f" (see {error.ctx.command_path} --help)" if error.ctx is not None else ""
            typer.echo(f"error: {text}{where}", err=True)
            sys.exit(error.exit_code)
        except typer.Abort:
            sys.exit(1)
        if code == INTERRUPTED:
            typer.echo("interrupted: finished runs are stored; repeat the command to continue", err=True)
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    cls=OneSentenceGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # inherited by all verbs
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Learnable graph rewiring for node classification on PyTorch Geometric.",
)
for verb in (demo, train, predict, rewire, report, audit, measure, tune, data, doctor):
    app.command()(verb)
app.add_typer(runs, name="runs")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gumbel-mpnn {__version__}")
        raise typer.Exit


@app.callback()
def _(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options of the command itself."""


class _PutOff(MetaPathFinder):
    """Runs some modules when an attribute of them is asked for, not when they are imported.

    `import torch_geometric` imports all of these, which takes longer than torch, and most commands use none of them.
    `from module import name` runs a module at once.
    """

    NAMES = (
        "numba",
        "torch._dynamo",
        *(f"torch_geometric.{name}" for name in ("datasets", "explain", "nn", "profile")),
    )

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in self.NAMES else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def set_up() -> None:
    """Prepare the process, before torch is imported."""
    # Waiting threads that spin make training up to ten times slower if another program uses the same cores.
    # OpenMP reads this variable once, when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.meta_path.insert(0, _PutOff())


def main() -> None:
    """Run the command."""
    set_up()
    app()
