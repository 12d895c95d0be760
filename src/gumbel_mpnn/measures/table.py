"""Registry of measures by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch_geometric.data import Data

from gumbel_mpnn.measures.homophily import adjusted_homophily, edge_homophily, label_informativeness
from gumbel_mpnn.measures.neighborhoods import std_per_class
from gumbel_mpnn.measures.structure import Convention, node_degrees, num_components, num_edges, num_nodes, spectral_gap
from gumbel_mpnn.util.errors import DataWarning, unknown_name
from gumbel_mpnn.util.files import none_if_nan


@dataclass(frozen=True)
class Measure:
    """A function that maps a graph to a number."""

    function: Callable[..., int | float]
    heading: str
    needs_labels: bool = False
    by_convention: bool = False
    """Whether the function takes an edge convention as its second argument."""
    slow: bool = False
    """Whether it takes minutes on more than `MANY_EDGES` edges, where it is computed only if asked for by name."""


MANY_EDGES = 1_000_000

MEASURES: dict[str, Measure] = {
    "edge_homophily": Measure(edge_homophily, "edge homophily", needs_labels=True, by_convention=True),
    "adjusted_homophily": Measure(adjusted_homophily, "adjusted homophily", needs_labels=True, by_convention=True),
    "label_informativeness": Measure(
        label_informativeness, "label informativeness", needs_labels=True, by_convention=True
    ),
    "std_per_class": Measure(std_per_class, "std per class", needs_labels=True),
    "num_nodes": Measure(num_nodes, "nodes"),
    "num_edges": Measure(num_edges, "edges", by_convention=True),
    "degree_min": Measure(lambda *graph: int(node_degrees(*graph).min()), "min degree", by_convention=True),
    "degree_mean": Measure(
        lambda *graph: node_degrees(*graph).double().mean().item(), "mean degree", by_convention=True
    ),
    "degree_max": Measure(lambda *graph: int(node_degrees(*graph).max()), "max degree", by_convention=True),
    "num_components": Measure(num_components, "components"),
    "spectral_gap": Measure(spectral_gap, "spectral gap", slow=True),
}


def measure(
    data: Data, names: str | Iterable[str] | None = None, convention: Convention = "coalesced"
) -> dict[str, int | float | None]:
    """Compute measures of a graph by name.

    The value is None if a measure is not defined: without labels, or without an edge between labelled nodes. On more
    than a million edges, `spectral_gap` is left out (None) with a `DataWarning` unless `names` has it.

    Args:
        data: A graph; `y` [N] is -1 for unlabelled nodes.
        names: Names of measures, or one name; all of `MEASURES` by default.
        convention: Which edges are counted, see `undirected_edges`; `std_per_class` and `spectral_gap` always count
            each edge once.
    """
    chosen = [names] if isinstance(names, str) else list(MEASURES if names is None else names)
    for name in chosen:
        if name not in MEASURES:
            raise unknown_name("measure", name, MEASURES)
    left_out = [name for name in chosen if names is None and MEASURES[name].slow and num_edges(data) > MANY_EDGES]
    if left_out:
        warnings.warn(
            f"left out because this graph has more than {MANY_EDGES:,} edges: {', '.join(left_out)}; in Python,"
            f" gm.measures.measure(data, {left_out[0]!r}) computes it",
            DataWarning,
            stacklevel=2,
        )
    return {name: None if name in left_out else _value(MEASURES[name], data, convention) for name in chosen}


def _value(measure: Measure, data: Data, convention: Convention) -> int | float | None:
    if measure.needs_labels and data.get("y") is None:
        return None
    return none_if_nan(measure.function(data, convention) if measure.by_convention else measure.function(data))
