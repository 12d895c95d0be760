"""Similarity of nodes as a dot product of normalized embeddings, and sort keys for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError, check_at_least, did_you_mean, unknown_name
from gumbel_mpnn._util.sparse_tensors import coalesced
from gumbel_mpnn.candidates.base import CandidateStrategy
from gumbel_mpnn.candidates.blocks import SMALL

SIMILARITIES = ("cosine", "dot")
SEARCHES = ("exact", "approximate", "auto")
EXACT_UP_TO = 50_000
"""Nodes up to which `auto` searches exactly: an estimate of where this takes as long as compiling the approximate
search, about a minute."""
MEMORY = {"cpu": 2**26, "cuda": 2**29}
"""Bytes that a search may use besides its result; few on a CPU, so that scores stay in the cache."""


class BySimilarity(CandidateStrategy):
    """A strategy that compares nodes by their embeddings; `Local` describes its options."""

    def __init__(self, similarity: str, on: str, search: str = "exact", parts: int = 1) -> None:
        if similarity not in SIMILARITIES:
            raise unknown_name("similarity", similarity, SIMILARITIES)
        if search not in SEARCHES:
            raise unknown_name("search", search, SEARCHES)
        check_at_least(1, parts=parts)
        if search == "approximate" and similarity != "cosine":
            raise UserError(
                f"the approximate search is for similarity 'cosine', not {similarity!r}: set search='exact'"
            )
        self.similarity, self.on, self.search, self.parts = similarity, on, search, parts

    @property
    def reads(self) -> tuple[str, ...]:
        """Attribute with the embeddings."""
        return (self.on,)

    def is_approximate(self, data: Data) -> bool:
        """Whether to search approximately; small graphs and those of a batch are searched exactly."""
        if data.get("batch") is not None or self.similarity != "cosine":
            return False
        nodes = int(data.num_nodes or 0)
        wanted = self.search == "approximate" and nodes > SMALL
        return wanted or (self.search == "auto" and self.parts > 1 and nodes > EXACT_UP_TO)

    def embeddings(self, data: Data) -> Tensor:
        """Embeddings float32 [N, D] whose dot products sort all pairs by similarity."""
        return embeddings(data, self.on, self.similarity)


def memory(device: torch.device) -> int:
    """Bytes that a search on `device` may use."""
    return MEMORY.get(device.type, MEMORY["cpu"])


def embeddings(data: Data, on: str, similarity: str) -> Tensor:
    """Embeddings float32 [N, D] whose dot products sort all pairs by the similarity of the attribute `on`.

    They are scaled such that no dot product overflows. The cosine of a zero vector with any other is 0.
    """
    if _is_apart(data.get(on), data.num_nodes):
        return torch.zeros(int(data.num_nodes or 0), 1, device=data[on].device)
    x = _attribute(data, on)
    if x.shape[1] == 0:
        return x.new_zeros(x.shape[0], 1, dtype=torch.float32)
    size = x.abs()
    if similarity == "cosine":
        peak = size.amax(dim=1, keepdim=True)
        x = (x / torch.where(peak > 0, peak, 1)).float()
        norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
        return x / torch.where(norm > 0, norm, 1)
    # A power of two does not round, so equal products stay equal; it is bounded to be finite, as is its inverse.
    bound = 100 if x.dtype == torch.float32 else 1000
    exponent = math.frexp(float(size.max()))[1]
    return (x * math.ldexp(1.0, -min(max(exponent, -bound), bound))).float()


def sortable(score: Tensor, rank: Tensor | int) -> Tensor:
    """Sort keys int64: ascending by `score` (float32), equal scores descending by `rank` (below 2³¹)."""
    bits = (score + 0.0).view(torch.int32)  # turns −0 into 0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # the bits of negative floats grow with their absolute value
    return (ordered.long() << 32) - rank


def circle_steps(start: Tensor, end: Tensor, size: int) -> Tensor:
    """Number of steps forward from `start` to `end` on a circle of `size` places."""
    steps = end - start
    return torch.where(steps < 0, steps + size, steps)


def rank_of(key: Tensor) -> Tensor:
    """Rank of a key of `sortable`."""
    return -key & 0xFFFFFFFF


def is_possible(key: Tensor) -> Tensor:
    """Whether the score of a key of `sortable` is above 0; a similarity of 0 has no meaning."""
    return key > 0


@contextmanager
def full_precision() -> Iterator[None]:
    """Multiply float32 matrices in full precision, even if training allows TF32 or bfloat16."""
    switches: list[Any] = [torch.backends.cuda.matmul, torch.backends.mkldnn.matmul]  # type: ignore[attr-defined]
    before = [switch.fp32_precision for switch in switches]
    if set(before) <= {"none", "ieee"}:
        yield
        return
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:  # torch raises this once its newer switches have been used
        older = None
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        if older is not None:
            torch.set_float32_matmul_precision(older)
        for switch, value in zip(switches, before, strict=True):
            switch.fp32_precision = value


def _is_apart(value: object, num_nodes: int | None) -> bool:
    """Whether `value` is sparse and no two nodes share a feature, as in the identity matrix: all similarities are 0."""
    if not isinstance(value, Tensor) or value.layout is torch.strided or value.dim() != 2 or len(value) != num_nodes:
        return False
    columns = coalesced(value.detach()).indices()[1]
    return columns.numel() == 0 or int(columns.bincount().max()) == 1


def _attribute(data: Data, name: str) -> Tensor:
    """Check the attribute and convert it to floats [N, D]."""
    value = data.get(name)
    if not isinstance(value, Tensor):
        raise DataError(f"the graph has no tensor {name!r} to measure similarity on: {did_you_mean(name, data.keys())}")
    x = value.detach()
    x = x.to_dense() if x.layout is not torch.strided else x
    if x.dim() != 2 or x.shape[0] != data.num_nodes or x.is_complex():
        wanted = f"numbers of shape [{data.num_nodes}, D]"
        raise DataError(f"{name!r} must be {wanted} to measure similarity on, not {x.dtype} {list(x.shape)}")
    x = x if x.dtype in (torch.float32, torch.float64) else x.float()
    broken = ~torch.isfinite(x).all(dim=1)
    if bool(broken.any()):
        raise DataError(f"{name!r} of node {int(broken.nonzero()[0])} is not finite: similarity needs finite numbers")
    return x
