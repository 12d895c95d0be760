"""Caches of results computed from tensors, valid in training even if they were computed in inference mode."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, wraps
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

T = TypeVar("T")

MAX_RESULTS = 3
"""Number of results cached per owner: enough for models that take turns on one graph."""


class TensorCache(Generic[T]):
    """Cache of a few results per owner, valid while the owner lives and the source tensors are unchanged."""

    def __init__(self) -> None:
        self._results: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def get(self, owner: object, sources: Sequence[Tensor | None], make: Callable[[], T], *facts: Hashable) -> T:
        """Return the cached result of `make`, recomputed if a source was changed in place by torch.

        The result is dropped together with `owner`; `facts` are other values that it depends on. Changes that torch
        does not know of, such as those of the array `tensor.numpy()`, are not noticed. Results are not cached if a
        source requires a gradient (each pass has its own autograd graph) or was created in inference mode (such tensors
        do not record changes).
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

    @wraps(make)
    def outside_inference_mode(instance: Any) -> T:
        with torch.inference_mode(False):
            return make(instance)

    return cached_property(outside_inference_mode)
