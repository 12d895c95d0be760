"""What is computed once and kept: for tensors that do not change, and of use in training wherever it was made."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, wraps
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

T = TypeVar("T")


KEPT = 3
"""Results that an owner has at a time: models that take turns on a graph look at it in as many ways."""


class TensorCache(Generic[T]):
    """A few results for each owner, kept while it lives and the tensors they were made of stay as they were."""

    def __init__(self) -> None:
        self._kept: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def get(self, owner: object, sources: Sequence[Tensor | None], make: Callable[[], T], *facts: Hashable) -> T:
        """The result of `make` for these sources and facts, made anew where a source was changed in place.

        Nothing is kept of tensors that need a gradient (each pass has an autograd graph of its own), nor of tensors
        made in inference mode (they do not tell of changes).
        """
        given = [tensor for tensor in sources if tensor is not None]
        if any(tensor.requires_grad or tensor.is_inference() for tensor in given):
            return make()
        key = (*facts, *(id(tensor) for tensor in sources))
        versions = [tensor._version for tensor in given]
        kept: dict[Hashable, tuple[list[int], T, list[Tensor]]] = self._kept.setdefault(owner, {})
        found = kept.pop(key, None)  # the one asked for last is the last to go
        if found is None or found[0] != versions:
            with torch.inference_mode(False):  # what is made in inference mode could not be trained with
                # The sources are held, so that no other tensor gets their ids; not the owner, which may go.
                found = (versions, make(), [tensor for tensor in given if tensor is not owner])
            if len(kept) == KEPT:
                kept.pop(next(iter(kept)))
        kept[key] = found
        return found[1]

    def __reduce__(self) -> tuple[type[TensorCache[T]], tuple[()]]:
        """Copies and pickles are empty: what is kept can be made again."""
        return type(self), ()


def lasting_property(make: Callable[[Any], T]) -> cached_property[T]:
    """A `cached_property` that can be trained with even where it was first asked for in inference mode."""

    @wraps(make)
    def outside_inference_mode(instance: Any) -> T:
        with torch.inference_mode(False):
            return make(instance)

    return cached_property(outside_inference_mode)
