"""Learnable graph rewiring for node classification on PyTorch Geometric."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gumbel_mpnn._version import __version__

if TYPE_CHECKING:
    from gumbel_mpnn import candidates, data, graph, measures, nn, rewiring
    from gumbel_mpnn import sklearn as sklearn
    from gumbel_mpnn._util.errors import UserError
    from gumbel_mpnn.data import from_csv, from_graphml, from_networkx, from_npz, from_parquet, load
    from gumbel_mpnn.graph import PairGraph
    from gumbel_mpnn.nn import APPNP, GAT, GCN, MLP, GraphSAGE
    from gumbel_mpnn.paper import reproduce
    from gumbel_mpnn.report.neighborhood_plot import plot_neighborhood
    from gumbel_mpnn.rewiring import GumbelMPNN, Rewired, RewiredGraph, regularizers
    from gumbel_mpnn.runs import Estimate, Machines, Run, Tuning, estimate, fit, load_run, tune

__all__ = [
    "APPNP",
    "GAT",
    "GCN",
    "MLP",
    "Estimate",
    "GraphSAGE",
    "GumbelMPNN",
    "Machines",
    "PairGraph",
    "Rewired",
    "RewiredGraph",
    "Run",
    "Tuning",
    "UserError",
    "__version__",
    "baselines",
    "candidates",
    "data",
    "estimate",
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
    "reproduce",
    "rewiring",
    "tune",
]

_OPTIONAL = ["sklearn"]
"""Subpackages that need a package that may be missing, which `from gumbel_mpnn import *` must not ask for."""
_MODULE_OF = {
    **dict.fromkeys(["from_csv", "from_graphml", "from_networkx", "from_npz", "from_parquet", "load"], "data"),
    **dict.fromkeys(["APPNP", "GAT", "GCN", "MLP", "GraphSAGE"], "nn"),
    **dict.fromkeys(["GumbelMPNN", "Rewired", "RewiredGraph", "regularizers"], "rewiring"),
    **dict.fromkeys(["Estimate", "Machines", "Run", "Tuning", "estimate", "fit", "load_run", "tune"], "runs"),
    "PairGraph": "graph",
    "plot_neighborhood": "report.neighborhood_plot",
    "reproduce": "paper",
    "UserError": "_util.errors",
}


def __getattr__(name: str) -> Any:
    """Import a subpackage when one of its names is first used, so that the command line starts without torch."""
    if name in _MODULE_OF:
        return getattr(import_module(f"gumbel_mpnn.{_MODULE_OF[name]}"), name)
    if name in __all__ or name in _OPTIONAL:
        return import_module(f"gumbel_mpnn.{name}")
    raise AttributeError(f"module 'gumbel_mpnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_OPTIONAL]
