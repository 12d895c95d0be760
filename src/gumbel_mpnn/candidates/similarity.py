"""Similarity of nodes as a dot product of prepared embeddings, and the order of best matches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, did_you_mean, unknown_name
from gumbel_mpnn.candidates.base import CandidateStrategy

SIMILARITIES = ("cosine", "dot")
MEMORY = {"cpu": 2**26, "cuda": 2**29}
"""Bytes a search may use at a time beside its result; on a CPU few, so that the scores stay near the cache."""


class BySimilarity(CandidateStrategy):
    """A strategy that compares nodes.

    Args:
        similarity: `cosine`, or `dot` (the paper's).
        on: The attribute of the graph with the embeddings [N, D].
    """

    def __init__(self, similarity: str, on: str) -> None:
        check_similarity(similarity)
        self.similarity, self.on = similarity, on

    @property
    def reads(self) -> tuple[str, ...]:
        """The embeddings."""
        return (self.on,)

    def embeddings(self, data: Data) -> Tensor:
        """Float32 [N, D]; their dot products order all pairs by similarity."""
        return embeddings(data, self.on, self.similarity)


def memory(device: torch.device) -> int:
    """Bytes a search on `device` may use at a time."""
    return MEMORY.get(device.type, MEMORY["cpu"])


def check_similarity(name: str) -> None:
    """Raise a `UserError` unless there is a similarity called `name`."""
    if name not in SIMILARITIES:
        raise unknown_name("similarity", name, SIMILARITIES)


def embeddings(data: Data, on: str, similarity: str) -> Tensor:
    """Embeddings float32 [N, D] whose dot products order all pairs as `similarity` of the attribute `on` does.

    No dot product overflows, however large the given numbers; the cosine of a zero vector with anything is 0.
    """
    x = _attribute(data, on)
    if x.shape[1] == 0:
        return x.new_zeros(x.shape[0], 1, dtype=torch.float32)
    size = x.abs()
    if similarity == "cosine":
        peak = size.amax(dim=1, keepdim=True)
        x = (x / torch.where(peak > 0, peak, 1)).float()
        norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
        return x / torch.where(norm > 0, norm, 1)
    # A power of two, so that equal products stay equal; bounded, so that it and its inverse are finite numbers.
    bound = 100 if x.dtype == torch.float32 else 1000
    exponent = math.frexp(float(size.max()))[1]
    return (x * math.ldexp(1.0, -min(max(exponent, -bound), bound))).float()


def sortable(score: Tensor, rank: Tensor | int) -> Tensor:
    """Numbers int64 in the order of `score` (float32), equal scores in descending order of `rank` (below 2³¹)."""
    bits = (score + 0.0).view(torch.int32)  # −0 + 0 = 0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # the bits of negative floats grow with their absolute value
    return (ordered.long() << 32) - rank


def circle_steps(start: Tensor, end: Tensor, size: int) -> Tensor:
    """How many steps forward lead from `start` to `end` on a circle of `size` places."""
    steps = end - start
    return torch.where(steps < 0, steps + size, steps)


def rank_of(key: Tensor) -> Tensor:
    """The rank that went into `sortable`."""
    return -key & 0xFFFFFFFF


def is_possible(key: Tensor) -> Tensor:
    """Whether the score that went into `sortable` was above 0: a similarity of 0 says nothing of two nodes."""
    return key > 0


@contextmanager
def full_precision() -> Iterator[None]:
    """Products of float32 matrices without shortcuts (TF32, bfloat16), even where training allows them."""
    switches: list[Any] = [torch.backends.cuda.matmul, torch.backends.mkldnn.matmul]  # type: ignore[attr-defined]
    before = [switch.fp32_precision for switch in switches]
    if set(before) <= {"none", "ieee"}:
        yield
        return
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:  # torch refuses to say once its newer switches have been used
        older = None
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        if older is not None:
            torch.set_float32_matmul_precision(older)
        for switch, value in zip(switches, before, strict=True):
            switch.fp32_precision = value


def _attribute(data: Data, name: str) -> Tensor:
    """The attribute as floats [N, D], or a `DataError` that says why it cannot be."""
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
