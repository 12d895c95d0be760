"""The GPU kernels of this room."""

from gumbel_mpnn.nn.kernels.linear import is_narrow, outer_sums, sum_of_products
from gumbel_mpnn.nn.kernels.norm import batch_moments, norm_relu_dropout
from gumbel_mpnn.nn.kernels.random import fused_dropout, fused_uniform

__all__ = [
    "batch_moments",
    "fused_dropout",
    "fused_uniform",
    "is_narrow",
    "norm_relu_dropout",
    "outer_sums",
    "sum_of_products",
]
