"""A figure of one tree before and after rewiring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumbel_mpnn.report.chart import saved_figure
from gumbel_mpnn.report.style import PALETTE

Edge = tuple[int, int]
LOOKS: dict[str, dict[str, Any]] = {
    "kept": {"color": "#555555", "linewidth": 1.4, "linestyle": "-"},
    "dropped": {"color": "#bbbbbb", "linewidth": 1.2, "linestyle": ":"},
    "added": {"color": PALETTE[2], "linewidth": 0.9, "linestyle": "-"},
}
BIT_COLORS = {1: PALETTE[0], 0: PALETTE[1]}
"""Blue for 1 and orange for 0, as in the paper."""
ROOT, INNER = "#222222", "#999999"


@dataclass(frozen=True)
class RewiredTree:
    """A tree whose nodes are numbered depth first, and the edges that a model learned for it."""

    parent: Sequence[int]
    """Parent of each node, -1 for the root; a parent has a smaller number than its children."""
    bits: Sequence[int]
    """0 or 1 for each leaf, -1 for all other nodes."""
    edges: Sequence[Sequence[int]]
    """Undirected edges of the learned graph."""

    def edges_by_kind(self) -> dict[str, list[Edge]]:
        """Return the edges that were kept, dropped and added, each as (smaller, larger)."""
        given = {(parent, node) for node, parent in enumerate(self.parent) if parent >= 0}
        learned = {(min(edge), max(edge)) for edge in self.edges}
        return {"kept": sorted(given & learned), "dropped": sorted(given - learned), "added": sorted(learned - given)}

    def places(self) -> list[tuple[float, float]]:
        """Return the place of each node: leaves from left to right, every other node above the middle of its leaves."""
        depth, children = [0] * len(self.parent), [list[int]() for _ in self.parent]
        for node, parent in enumerate(self.parent):
            if parent >= 0:
                depth[node] = depth[parent] + 1
                children[parent].append(node)
        leaves = [node for node, below in enumerate(children) if not below]
        across = [0.0] * len(self.parent)
        for place, leaf in enumerate(leaves):
            across[leaf] = float(place)
        for node in reversed(range(len(children))):
            if children[node]:
                across[node] = sum(across[child] for child in children[node]) / len(children[node])
        return [(x, -float(level)) for x, level in zip(across, depth, strict=True)]


def draw_rewired_tree(tree: RewiredTree, paths: Iterable[Path]) -> None:
    """Draw the given tree on the left and the rewired tree on the right, and save the figure to each of `paths`."""
    edges = tree.edges_by_kind()
    given = {"kept": edges["kept"] + edges["dropped"]}
    counts = ", ".join(f"{len(some)} {kind}" for kind, some in edges.items())
    with saved_figure(paths, 2, (9.5, 3.4)) as (left, right):
        _draw(left, tree, given, f"given tree: {sum(bit == 1 for bit in tree.bits)} leaves have the bit 1")
        _draw(right, tree, edges, f"after rewiring: {counts} edges")
        right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        left.figure.tight_layout()


def _draw(axes: Any, tree: RewiredTree, edges: dict[str, list[Edge]], title: str) -> None:
    places = tree.places()
    for kind, some in edges.items():
        for number, (one, other) in enumerate(some):
            x, y = zip(places[one], places[other], strict=True)
            axes.plot(x, y, zorder=1, label=f"{kind} edge" if number == 0 else None, **LOOKS[kind])
    kinds = {
        "root": ([node for node, parent in enumerate(tree.parent) if parent < 0], ROOT, "s", 60),
        "inner node": ([n for n, bit in enumerate(tree.bits) if bit < 0 <= tree.parent[n]], INNER, "o", 18),
        **{
            f"leaf with bit {bit}": ([node for node, own in enumerate(tree.bits) if own == bit], color, "o", 32)
            for bit, color in BIT_COLORS.items()
        },
    }
    for name, (nodes, color, marker, size) in kinds.items():
        if nodes:
            x, y = zip(*(places[node] for node in nodes), strict=True)
            axes.scatter(x, y, c=color, s=size, marker=marker, label=name, zorder=2)
    axes.set_title(title)
    axes.set_axis_off()
