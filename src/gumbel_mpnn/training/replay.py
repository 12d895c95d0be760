"""CUDA graphs: device work of fixed shapes is captured once and replayed without launching each kernel."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import torch

WARM_UP = 3
"""Ordinary calls before the capture, which compile kernels and allocate workspaces and the moments of Adam."""


class Replay:
    """Calls `body`; on a GPU, from the fourth call on, as a CUDA graph.

    `body` has no arguments and returns nothing: it changes tensors in place.
    """

    def __init__(self, body: Callable[[], None], device: torch.device) -> None:
        self.body = body
        self.stream = _stream(device) if device.type == "cuda" else None
        self.graph: torch.cuda.CUDAGraph | None = None
        self.calls = 0

    def __call__(self) -> None:
        """Run the body once."""
        if self.stream is None:
            self.body()
            return
        if self.graph is None and self.calls < WARM_UP:
            self.calls += 1
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self.body()
            torch.cuda.current_stream().wait_stream(self.stream)
            return
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with _no_garbage_collection(), torch.cuda.graph(self.graph, stream=self.stream):
                self.body()
        self.graph.replay()


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """One stream per device, since torch allocates a cuBLAS workspace for every stream and never frees it."""
    return torch.cuda.Stream(device)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Collect garbage now and not in the block: freeing an old CUDA graph or event during a capture breaks it."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
