"""The kernels of norms and sums compile for a GPU in every number format, which no interpreter shows."""

import pytest

triton = pytest.importorskip("triton")

from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

from gumbel_mpnn.nn.kernels import norm as triton_norm  # noqa: E402
from gumbel_mpnn.nn.kernels import replica as triton_replica  # noqa: E402

COUNTS = {"nodes": "i32", "rows": "i32", "width": "i32", "chunks": "i32"}
NUMBERS = {"probability": "fp32", "scale": "fp32", "eps": "fp32"}
SIZES = {"CHUNK": 256, "NEAR": 16, "ROWS": 16, "WIDTH": 64, "DROP": True}
SUMS = ("mean", "rstd", "means", "squares", "sum_one", "sum_normal", "sum_out", "along_one", "along_normal")


def compiles(kernel, kept, **constants):
    """Compile a kernel for arrays kept in one format, sums of 32 bits at least."""
    summed = "*fp32" if kept == "bf16" else f"*{kept}"
    special = {"seeds": "*i64", "calls": "*i64", "offset": summed, "weight": summed, "bias": summed}
    special |= dict.fromkeys(SUMS, summed) | COUNTS | NUMBERS
    constants = {name: value for name, value in (SIZES | constants).items() if name in kernel.arg_names}
    signature = {name: "constexpr" if name in constants else special.get(name, f"*{kept}") for name in kernel.arg_names}
    places = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    return triton.compile(ASTSource(kernel, signature, constexprs=places), target=GPUTarget("cuda", 90, 32))


@pytest.mark.parametrize("kept", ["fp32", "fp64", "bf16"])
class TestNorms:
    @pytest.mark.parametrize("norm", ["none", "layer", "batch"])
    def test_forward_and_sums_of_gradients(self, kept, norm):
        assert compiles(triton_norm._forward, kept, NORM=norm).asm["ptx"]
        assert compiles(triton_norm._chunk_grads, kept, NORM=norm).asm["ptx"]

    def test_moments_and_the_gradient_of_batch_norm(self, kept):
        assert compiles(triton_norm._chunk_moments, kept).asm["ptx"]
        assert compiles(triton_norm._batch_grad, kept).asm["ptx"]

    def test_sums(self, kept):
        total = triton.language.float64 if kept == "fp64" else triton.language.float32
        assert compiles(triton_replica._chunk_sums, kept, TILES=4, TOTAL=total).asm["ptx"]
