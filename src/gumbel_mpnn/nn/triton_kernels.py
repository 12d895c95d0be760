"""The GPU kernels of this room."""

from gumbel_mpnn.nn.triton_dropout import fused_dropout
from gumbel_mpnn.nn.triton_norm import batch_moments, norm_relu_dropout

__all__ = ["batch_moments", "fused_dropout", "norm_relu_dropout"]
