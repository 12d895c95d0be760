"""Gradients that are written by hand and have no gradient themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

from gumbel_mpnn._util.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")


def first_order(backward: Callable[P, R]) -> Callable[P, R]:
    """The `backward` of an autograd function, which refuses to be differentiated in its turn.

    Under torch's own `once_differentiable` some second derivatives come out as zero without a word, because the way to
    the inputs is cut (`torch.autograd.grad`, `torch.autograd.functional.hessian`).
    """

    @functools.wraps(backward)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.is_grad_enabled():
            raise UserError("these layers have no second derivatives: leave out create_graph=True")
        return backward(*args, **kwargs)

    return guarded
