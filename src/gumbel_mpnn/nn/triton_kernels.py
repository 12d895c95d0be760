"""The GPU kernels of this room."""

from gumbel_mpnn.nn.triton_linear import is_narrow, narrow_linear
from gumbel_mpnn.nn.triton_norm import batch_moments, norm_relu_dropout
from gumbel_mpnn.nn.triton_random import fused_dropout, fused_uniform

__all__ = ["batch_moments", "fused_dropout", "fused_uniform", "is_narrow", "narrow_linear", "norm_relu_dropout"]
