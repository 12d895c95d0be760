"""Learnable graph rewiring for node classification on PyTorch Geometric."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gumbel_mpnn._version import __version__

if TYPE_CHECKING:
    from gumbel_mpnn import candidates, data, graph, measures, nn, rewiring
    from gumbel_mpnn import sklearn as sklearn
    from gumbel_mpnn.data import from_csv, from_graphml, from_networkx, from_npz, from_parquet, load
    from gumbel_mpnn.graph import PairGraph
    from gumbel_mpnn.nn import APPNP, GAT, GCN, MLP, GraphSAGE
    from gumbel_mpnn.report.plots import plot_neighborhood
    from gumbel_mpnn.rewiring import GumbelMPNN, Rewired, RewiredGraph, regularizers
    from gumbel_mpnn.runs import list_runs as runs
    from gumbel_mpnn.runs.compare import compare
    from gumbel_mpnn.runs.fit import fit
    from gumbel_mpnn.runs.run import Run, load_run
    from gumbel_mpnn.runs.tune import Tuning, tune
    from gumbel_mpnn.util.errors import UserError

__all__ = [
    "APPNP",
    "GAT",
    "GCN",
    "MLP",
    "GraphSAGE",
    "GumbelMPNN",
    "PairGraph",
    "Rewired",
    "RewiredGraph",
    "Run",
    "Tuning",
    "UserError",
    "__version__",
    "baselines",
    "candidates",
    "compare",
    "data",
    "fit",
    "from_csv",
    "from_graphml",
    "from_networkx",
    "from_npz",
    "from_parquet",
    "graph",
    "load",
    "load_run",
    "measures",
    "nn",
    "plot_neighborhood",
    "regularizers",
    "rewiring",
    "runs",
    "tune",
]

_NOT_FOR_STAR = ["sklearn"]
"""Left out by `from gumbel_mpnn import *`, which would otherwise hide the package of the same name."""
_MODULE_OF = {
    **dict.fromkeys(["from_csv", "from_graphml", "from_networkx", "from_npz", "from_parquet", "load"], "data"),
    **dict.fromkeys(["APPNP", "GAT", "GCN", "MLP", "GraphSAGE"], "nn"),
    **dict.fromkeys(["GumbelMPNN", "Rewired", "RewiredGraph", "regularizers"], "rewiring"),
    **{"compare": "runs.compare", "fit": "runs.fit", **dict.fromkeys(["Run", "load_run"], "runs.run")},
    **dict.fromkeys(["Tuning", "tune"], "runs.tune"),
    "PairGraph": "graph",
    "plot_neighborhood": "report.plots",
    "UserError": "util.errors",
}


def __getattr__(name: str) -> Any:
    """Import a subpackage when one of its names is first used, so that the command line starts without torch."""
    if name in _MODULE_OF:
        return getattr(import_module(f"gumbel_mpnn.{_MODULE_OF[name]}"), name)
    if name in __all__ or name in _NOT_FOR_STAR:
        return import_module(f"gumbel_mpnn.{name}")
    raise AttributeError(f"module 'gumbel_mpnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_NOT_FOR_STAR]
