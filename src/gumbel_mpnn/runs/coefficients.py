"""What a step and the search for candidates cost on a device, measured by `python benchmarks/estimate.py`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from gumbel_mpnn._util.errors import unknown_name
from gumbel_mpnn.nn.model import Sizes, Work

FOLDER = "measured"
"""Folder in this package with a TOML file for each device."""


@dataclass(frozen=True)
class Coefficients:
    """Costs on one device. Bytes are shares of the upper bounds that `fit` plans with, and seconds are of a step."""

    on: str
    """Device, and how it was measured."""
    memory_gib: float
    """Memory of the device; 0 for that of this machine."""
    node_share: float
    """Bytes at the peak of a step, as a share of the bound for a graph without arcs."""
    arc_share: float
    """The same for what arcs add to the bound."""
    arc_bytes: float
    """Bytes of the layout of the graph for each arc."""
    start_s: float
    """Time of a step that does nothing."""
    row_s: float
    """Time to fetch a row along an arc or a pair, without its numbers."""
    number_s: float
    """Time to fetch a number of a message."""
    weighed_s: float
    """Time to fetch a number for a score or for the gradient of a weight."""
    byte_s: float
    """Time for each byte of the bound for a graph without arcs, which is written and read."""
    product_s: float
    """Time of an operation of a product with a matrix."""
    product_tf32_s: float
    """The same in TF32, which `fit` uses on a GPU by default."""
    bfloat16_memory: float
    """Memory of a step in bfloat16, as a share of that in float32."""
    bfloat16_time: float
    """Time of a step in bfloat16, as a share of that in float32."""
    compared_pair_s: float
    """Time to compare two nodes in a search by similarity, without their features."""
    compared_number_s: float
    """Time to compare a feature of two nodes."""
    two_hop_arc_s: float
    """Time of a two-hop search for each arc."""

    def step_bytes(self, of_nodes: int, of_arcs: int, sizes: Sizes, in_16_bits: bool) -> int:
        """Memory at the peak of a step, with graph and features, from the bounds without and for arcs."""
        step = self.node_share * of_nodes + self.arc_share * of_arcs
        return int(step * (self.bfloat16_memory if in_16_bits else 1) + self.arc_bytes * sizes.arcs + 4 * sizes.inputs)

    def step_seconds(self, work: Work, of_nodes: int, *, tf32: bool, in_16_bits: bool) -> float:
        """Time of a step, from its work and from the bound for a graph without arcs."""
        fetched = self.row_s * work.rows + self.number_s * work.numbers + self.weighed_s * work.weighed
        moved = self.start_s + fetched + self.byte_s * of_nodes
        if in_16_bits:
            return self.bfloat16_time * (moved + self.product_s * work.products)
        return moved + (self.product_tf32_s if tf32 else self.product_s) * work.products


def coefficients(device: str) -> Coefficients:
    """Coefficients of the device called `device`, such as `h200` or `cpu`."""
    folder = files("gumbel_mpnn.runs").joinpath(FOLDER)
    known = {path.name.removesuffix(".toml"): path for path in folder.iterdir() if path.name.endswith(".toml")}
    if device not in known:
        raise unknown_name("device", device, known)
    return Coefficients(**tomllib.loads(known[device].read_text(encoding="utf-8")))
