"""A piece of device work of fixed shapes, captured once and replayed without the cost of launching its kernels."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import torch

WARM_UP = 3
"""Calls that run plainly before the capture: kernels are compiled, workspaces allocated, moments of Adam made."""


class Replay:
    """Call `body`; on a GPU, from the fourth time on, as a CUDA graph.

    `body` takes and gives nothing: it works in place on tensors that stay where they are.
    """

    def __init__(self, body: Callable[[], None], device: torch.device) -> None:
        self.body = body
        self.stream = _stream(device) if device.type == "cuda" else None
        self.graph: torch.cuda.CUDAGraph | None = None
        self.calls = 0

    def __call__(self) -> None:
        """Do the work once."""
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
    """One for all: torch keeps a workspace of cuBLAS for every stream that was ever used."""
    return torch.cuda.Stream(device)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Collect now and not within: freeing an old graph or event while another is captured breaks the capture."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
