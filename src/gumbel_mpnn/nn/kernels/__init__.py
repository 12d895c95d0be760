"""Triton kernels of the layers, imported only where there is a GPU that runs them."""
