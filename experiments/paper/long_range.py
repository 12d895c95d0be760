"""LeafCount and Tree-NeighborsMatch: long-range tasks on trees, with few layers and rewiring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from experiments.experiment import Experiment, Job, Results
from experiments.kept import kept
from experiments.published import PaperNumber, published
from experiments.rows import figures
from experiments.tree_neighbors_match import NAME as MATCH
from gumbel_mpnn.baselines import SDRF
from gumbel_mpnn.graph import without_pairs
from gumbel_mpnn.report import PALETTE, Row, saved_figure
from gumbel_mpnn.runs import Run

DEPTHS = {"leaf-count": 4, MATCH: 3}
"""Tasks, with the number of hops from the root of a tree to its leaves."""
PAPER = "leaf-count"
"""The task that the paper reports."""
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
class SDRFOfEachTree:
    """Transform that applies SDRF to each tree separately.

    SDRF on all of them takes the edge of lowest curvature of all trees in every step. A new edge lowers the curvature
    of others next to it, so most steps would be spent on a few trees.
    """

    iterations: int = 100
    seed: int = 0

    def __call__(self, data: Data) -> Data:
        """Return a copy of a forest, whose trees `data.batch` numbers, with every tree rewired."""
        sizes, rewire = data.batch.bincount(), SDRF(self.iterations, seed=self.seed)
        of_edge = data.batch[data.edge_index[0]]
        edges = data.edge_index[:, of_edge.argsort(stable=True)].split(of_edge.bincount().tolist(), dim=1)
        trees = zip(data.x.split(sizes.tolist()), edges, (sizes.cumsum(0) - sizes).tolist(), strict=True)
        rewired = [rewire(Data(x=x, edge_index=inside - first)).edge_index + first for x, inside, first in trees]
        out = without_pairs(data, len(data.batch))
        out.edge_index = torch.cat(rewired, dim=1)
        return out


class LongRange(Experiment):
    """A GCN with too few layers, one with enough, and with few layers also SDRF (LeafCount only) and Gumbel-MPNN."""

    name = "long-range"
    title = "What the root of a tree knows of its leaves"
    headings: Mapping[str, str] = {
        "dataset": "task",
        "chance": "chance %",
        "paper": "paper %",
        "to_paper": "ours − paper",
    }

    def plan(self) -> list[Job]:
        """Return jobs for each task, with enough layers for two hops per layer and for one hop per layer.

        SDRF is a GCN on trees that SDRF has rewired, each on its own.
        """
        return [
            Job(dataset, model, overrides=(f"model.num_layers={layers}",), transform=transform)
            for dataset in DEPTHS
            for few, enough in [_layers(dataset)]
            for model, layers, transform in (
                ("gcn", few, None),
                ("gcn", enough, None),
                *([("gcn", few, SDRFOfEachTree())] if dataset == PAPER else []),
                ("gumbel-mpnn", few, None),
            )
        ]

    def collect(self, results: Results) -> list[Row]:
        """Return one row for each task and model."""
        return [_row(job, run) for job, run in results.items() if run is not None]

    def draw(self, rows: Sequence[Row], results: Results, pictures: Sequence[Path]) -> bool:
        """Draw a tree of LeafCount before and after rewiring, as the first run learned it."""
        run = next((run for job, run in results.items() if (job.dataset, job.model) == (PAPER, "gumbel-mpnn")), None)
        if run is None:
            return False
        draw_rewired_tree(RewiredTree(**kept(run, "tree", partial(_first_test_tree, run))), pictures)
        return True

    def numbers(self) -> list[PaperNumber]:
        """Return the paper's three numbers, which have no ±."""
        return [
            PaperNumber(
                PAPER,
                f"test %, {layers} layers",
                value,
                {"dataset": PAPER, "model": model, "layers": int(layers)},
                "test",
                model,
                error_column="stderr",
                preset="tuned",
                accuracy=True,
            )
            for model, values in published("long-range").items()
            for layers, value in values.items()
        ]


def _layers(dataset: str) -> tuple[int, int]:
    """Return the number of layers from the leaves to the root, with edges between nodes two hops apart and without.

    Tree-NeighborsMatch needs one more layer, in which a leaf combines its value with its key.
    """
    depth, more = DEPTHS[dataset], dataset != PAPER
    return -(-depth // 2) + more, depth + more


def _first_test_tree(run: Run) -> dict[str, Any]:
    """Return the first test tree of the first run as it was learned, as plain values of a `RewiredTree`."""
    first, data = run.records[0], run.data
    root = int(data.test_mask[:, first.split].nonzero()[0])
    nodes = (data.batch == data.batch[root]).nonzero().squeeze(1)
    bits = data.x[nodes, -2:]
    learned = replace(run, records=(first,)).rewire().edge_index
    parents = {child: parent for parent, child in _inside(data.edge_index, nodes)}
    return asdict(
        RewiredTree(
            parent=[parents.get(node, -1) for node in range(len(nodes))],
            bits=[int(bit) if is_leaf else -1 for is_leaf, bit in zip(bits.sum(1), bits[:, 1], strict=True)],
            edges=_inside(learned, nodes),
        )
    )


def _inside(edge_index: Tensor, nodes: Tensor) -> list[list[int]]:
    """Return the edges among consecutive nodes, numbered from 0, each once with the smaller number first."""
    edges = (edge_index.T - nodes[0]).sort(dim=1).values
    inside: list[list[int]] = edges[((edges >= 0) & (edges < len(nodes))).all(1)].unique(dim=0).tolist()
    return inside


def _row(job: Job, run: Run) -> Row:
    layers, model = run.settings.options["num_layers"], job.model if job.transform is None else "sdrf"
    paper = published("long-range").get(model, {}).get(str(layers)) if job.dataset == PAPER else None
    return {
        "dataset": job.dataset,
        "depth": DEPTHS[job.dataset],
        "model": model,
        "layers": layers,
        **figures(run),
        "chance": 100 / (int(run.data.y.max()) + 1),
        "paper": paper,
        "to_paper": None if paper is None else 100 * run.test.mean - paper,
    }


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


def draw_rewired_tree(tree: RewiredTree, pictures: Iterable[Path]) -> None:
    """Draw the given tree on the left and the rewired tree on the right, and save the figure to each of `pictures`."""
    edges = tree.edges_by_kind()
    given = {"kept": edges["kept"] + edges["dropped"]}
    counts = ", ".join(f"{len(some)} {kind}" for kind, some in edges.items())
    with saved_figure(pictures, 2, (9.5, 3.4)) as (left, right):
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
