"""The command `gumbel-mpnn`, with one module for each verb."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

import typer

from gumbel_mpnn.cli.audit import audit
from gumbel_mpnn.cli.common import OneSentenceGroup, show_version
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

app = typer.Typer(
    cls=OneSentenceGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # inherited by all verbs
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Learnable graph rewiring for node classification on PyTorch Geometric.",
)
app.callback()(show_version)
for verb in (demo, train, predict, rewire, report, audit, measure, tune, data, doctor):
    app.command()(verb)
app.add_typer(runs, name="runs")


class _PutOff(MetaPathFinder):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in self.names else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def put_off(*names: str) -> None:
    """From now on in this process, run the modules `names` when an attribute is asked for, not when they are imported.

    For modules that another package imports but we seldom use. `from module import name` runs the module at once.
    """
    sys.meta_path.insert(0, _PutOff(names))


def set_up() -> None:
    """Prepare the process, before torch is imported."""
    # Waiting threads that spin make training up to ten times slower if another program uses the same cores.
    # OpenMP reads this variable once, when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # `import torch_geometric` imports all of these, which takes longer than torch. Most commands use none of them.
    put_off("numba", "torch._dynamo", *(f"torch_geometric.{name}" for name in ("datasets", "explain", "nn", "profile")))


def main() -> None:
    """Run the command."""
    set_up()
    app()
