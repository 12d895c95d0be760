"""The command `gumbel-mpnn`, with one module for each verb."""

from __future__ import annotations

import os

import typer

from gumbel_mpnn._util.put_off import put_off
from gumbel_mpnn.cli.audit import audit
from gumbel_mpnn.cli.common import OneSentenceGroup, show_version
from gumbel_mpnn.cli.data import app as data
from gumbel_mpnn.cli.demo import demo
from gumbel_mpnn.cli.doctor import doctor
from gumbel_mpnn.cli.estimate import estimate
from gumbel_mpnn.cli.measure import measure
from gumbel_mpnn.cli.predict import predict
from gumbel_mpnn.cli.presets import app as presets
from gumbel_mpnn.cli.report import report
from gumbel_mpnn.cli.reproduce import reproduce
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
for verb in (demo, train, predict, rewire, report, audit, measure, tune, estimate, reproduce, doctor):
    app.command()(verb)
app.add_typer(data, name="data")
app.add_typer(presets, name="presets")
app.add_typer(runs, name="runs")


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
