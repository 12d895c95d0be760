"""An allocation that fails at the n-th operation on tensors, as torch reports it on a CPU."""

from torch.utils._python_dispatch import TorchDispatchMode

MEMORY = "memory"
MESSAGE = (
    "DefaultCPUAllocator: can't allocate memory: you tried to allocate 64 bytes. Error code 12 (Cannot allocate memory)"
)


class MemoryFaults(TorchDispatchMode):
    """Counts the operations on tensors, forward and backward, and makes number `at` (from 1) fail."""

    def __init__(self, at):
        super().__init__()
        self.at, self.count, self.writes = at, 0, list[int]()

    def arm(self):
        self.__enter__()
        return self

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        if self.count == self.at:
            raise RuntimeError(MESSAGE)
        return func(*args, **(kwargs or {}))
