"""Standardized features: each column minus its mean, divided by its standard deviation."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Standardize(nn.Module):
    """Standardizes features by statistics of each replica, which are part of the state and so saved with it."""

    mean: Tensor
    scale: Tensor

    def __init__(self, replicas: int, num_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(replicas, 1, num_features, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(replicas, 1, num_features, dtype=torch.float64))

    @torch.no_grad()
    def fit(self, x: Tensor, train_mask: Tensor) -> None:
        """Take the statistics of `x` [N, F] over the training nodes [R, N] of each replica."""
        for replica, mask in enumerate(train_mask):
            self.mean[replica, 0], self.scale[replica, 0] = column_statistics(x[mask])

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """[N, F] → [R, N, F], computed in float64, one replica at a time to save memory."""
        out = x.new_empty(len(self.mean), *x.shape)
        for replica, part in enumerate(out):
            part.copy_((x.double() - self.mean[replica]) / self.scale[replica])
        return out


def column_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (of the population) of each column of `x` [N, F], float64 [F].

    The standard deviation of a constant column is given as 1, so that the column is only centered.
    """
    x = x.double()
    constant = (x == x[:1]).all(0)
    std = x.std(0, correction=0)
    return torch.where(constant, x[0], x.mean(0)), torch.where(constant | (std == 0), 1.0, std)
