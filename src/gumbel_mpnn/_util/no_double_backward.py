"""A guard for hand-written gradients, which cannot be differentiated again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

from gumbel_mpnn._util.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")


def first_order(backward: Callable[P, R]) -> Callable[P, R]:
    """Decorate the `backward` of an autograd function so that second derivatives raise a `UserError`.

    With torch's `once_differentiable`, some second derivatives are silently zero, because the path to the inputs is cut
    (`torch.autograd.grad`, `torch.autograd.functional.hessian`).
    """

    @functools.wraps(backward)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.is_grad_enabled():
            raise UserError("these layers have no second derivatives: leave out create_graph=True")
        return backward(*args, **kwargs)

    return guarded
