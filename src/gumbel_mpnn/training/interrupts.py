"""Signals that end the program are held back until a checkpoint can be written."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class HeldBack:
    """Holds back the first Ctrl-C or SIGTERM within the block, and sends it again at the end of the block.

    A second signal takes effect at once. Only the main thread can do this; in other threads, and for signals that the
    program ignores or handles in a way of its own, nothing is changed.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._former: dict[int, Any] = {}

    def __enter__(self) -> HeldBack:
        """Begin to hold back signals."""
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._former[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Send a signal that was held back again."""
        self._restore()
        if self.received is not None and error is None:
            signal.raise_signal(self.received)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        self.received = number

    def _restore(self) -> None:
        while self._former:
            signal.signal(*self._former.popitem())
