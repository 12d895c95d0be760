"""Tensors: cached results, dense and sparse forms, digests, and a guard for hand-written gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from gumbel_mpnn.util.errors import UserError

if TYPE_CHECKING:
    from hashlib import _Hash

P = ParamSpec("P")
T = TypeVar("T")

MAX_RESULTS = 3
"""Number of results cached per owner: enough for models that take turns on one graph."""
MOST_DENSE = 2**24
"""Entries up to which a sparse tensor is made dense, 64 MiB of float32."""


class TensorCache(Generic[T]):
    """Cache of a few results per owner, valid while the owner lives and the source tensors are unchanged."""

    def __init__(self) -> None:
        self._results: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def get(self, owner: object, sources: Sequence[Tensor | None], make: Callable[[], T], *facts: Hashable) -> T:
        """Return the cached result of `make`, recomputed if a source was changed in place by torch.

        The result is dropped together with `owner`; `facts` are other values that it depends on. Changes that torch
        does not know of, such as those of the array `tensor.numpy()`, are not noticed. Results are not cached if a
        source requires a gradient (each pass has its own autograd graph) or was created in inference mode (such tensors
        do not record changes). Results can be used in training even if they were computed in inference mode.
        """
        given = [tensor for tensor in sources if tensor is not None]
        if any(tensor.requires_grad or tensor.is_inference() for tensor in given):
            return make()
        key = (*facts, *(id(tensor) for tensor in sources))
        versions = [tensor._version for tensor in given]
        results: dict[Hashable, tuple[list[int], T, list[Tensor]]] = self._results.setdefault(owner, {})
        found = results.pop(key, None)  # reinserted below: the least recently used result is first
        if found is None or found[0] != versions:
            with torch.inference_mode(False):  # else the result could not be used in training
                # Hold the sources, so that no other tensor gets their ids, but not the owner, which may be deleted.
                found = (versions, make(), [tensor for tensor in given if tensor is not owner])
            if len(results) == MAX_RESULTS:
                results.pop(next(iter(results)))
        results[key] = found
        return found[1]

    def __reduce__(self) -> tuple[type[TensorCache[T]], tuple[()]]:
        """Copies and pickles are empty: results can be recomputed."""
        return type(self), ()


def lasting_property(make: Callable[[Any], T]) -> cached_property[T]:
    """A `cached_property` that can be used in training even if it was first computed in inference mode."""

    @functools.wraps(make)
    def outside_inference_mode(instance: Any) -> T:
        with torch.inference_mode(False):
            return make(instance)

    return cached_property(outside_inference_mode)


def first_order(backward: Callable[P, T]) -> Callable[P, T]:
    """Decorate the `backward` of an autograd function so that second derivatives raise a `UserError`.

    With torch's `once_differentiable`, some second derivatives are silently zero, because the path to the inputs is cut
    (`torch.autograd.grad`, `torch.autograd.functional.hessian`).
    """

    @functools.wraps(backward)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        if torch.is_grad_enabled():
            raise UserError("these layers have no second derivatives: leave out create_graph=True")
        return backward(*args, **kwargs)

    return guarded


def dense_if_small(value: Tensor) -> Tensor:
    """Return a tensor as dense, or as coalesced COO if it is sparse and has more than `MOST_DENSE` entries."""
    if value.layout is torch.strided:
        return value
    return value.to_dense() if value.numel() <= MOST_DENSE else coalesced(value)


def coalesced(value: Tensor) -> Tensor:
    """Return a sparse tensor in COO format, with every position once and in order."""
    out: Tensor = value.to_sparse_coo().coalesce()
    return out


def add_tensor(digest: _Hash, name: str, value: Tensor) -> None:
    """Update `digest` with the name, dtype, shape and content of a tensor.

    The memory layout does not matter, except that large sparse tensors have another digest than dense ones.
    """
    digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
    plain = dense_if_small(value.detach().cpu())
    if plain.layout is not torch.strided:
        add_tensor(digest, "positions", plain.indices())
        plain = plain.values()
    digest.update(plain.contiguous().flatten().view(torch.uint8).numpy().data)  # numpy has no bfloat16
