"""Device to train on, and its free memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.nn.room import total_bytes

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def pick_device(name: str) -> torch.device:
    """Device called `name`; `auto` is a GPU if there is one, otherwise the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"there is no device {name!r}: use 'auto', 'cpu' or 'cuda'") from None
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"the device {name!r} is not supported: use 'auto', 'cpu' or 'cuda'")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError("there is no CUDA device here: use device 'cpu' or 'auto'")
    return device


def available_bytes(device: torch.device) -> int:
    """Free memory of the device in bytes."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return min([_left_on_the_machine(), *_left_in_cgroups()])


def _left_on_the_machine() -> int:
    meminfo = PROC / "meminfo"
    if meminfo.exists():
        return _numbers(meminfo.read_text().replace(":", ""))["MemAvailable"] * 1024
    return total_bytes(torch.device("cpu")) // 2


def _left_in_cgroups() -> Iterator[int]:
    """Free memory within each limit on this process; cached files that can be dropped count as free."""
    for folder, limit, usage, droppable in _cgroups():
        try:
            most = int((folder / limit).read_text())  # "max" means no limit
            used = int((folder / usage).read_text())
            files = _numbers((folder / "memory.stat").read_text()).get(droppable, 0)
        except (OSError, ValueError):
            continue
        yield max(0, most - max(0, used - files))


def _cgroups() -> Iterator[tuple[Path, str, str, str]]:
    """Folders of the cgroups of this process and of their parents, with the names of their files."""
    try:
        lines = (PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, names = CGROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):  # version 1
            root, names = CGROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        inner = Path(path.lstrip("/"))
        for folder in (inner, *inner.parents):
            yield root / folder, *names


def _numbers(text: str) -> dict[str, int]:
    """Numbers by name, from the first two words of each line."""
    return {name: int(number) for name, number, *_ in map(str.split, text.splitlines())}
