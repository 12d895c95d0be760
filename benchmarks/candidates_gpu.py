"""Each node's five most similar non-neighbors among 169,343 on a GPU: ours beside a plain chunked product and topk.

The features lie on the device. The plain search takes a number of rows at a time, multiplies them with all and keeps
the best six of each by cosine: itself and five more. Unlike ours it leaves no neighbors out and does not order equals.
`Global` looks for the most similar pairs of the whole graph: five times N, and twice the number of edges, its default.
`chunked` are the same searches without the screen of tensor cores. `Local` once more with the copies to the device and
back.

python benchmarks/candidates_gpu.py             # half a minute on an H200
python benchmarks/candidates_gpu.py --variants  # our searches with other tiles; prints and writes nothing
python benchmarks/candidates_gpu.py --toy       # seconds, on a CPU too; nothing is written
"""

from __future__ import annotations

import harness  # before torch: it says how torch's threads wait

# isort: split
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from candidates import FEATURES, PER_NODE, problem
from gumbel_mpnn.candidates import Global, Local, screen
from gumbel_mpnn.graph.kernels import import_kernels

NODES, CHUNK = 169_343, 4096
VARIANTS: dict[str, dict[str, int]] = {
    "as it is": {},
    "3 stages": {"stages": 3},
    "4 warps": {"warps": 4},
    "4 warps, 3 stages": {"warps": 4, "stages": 3},
    "128 x 64, 3 stages": {"cols": 64, "stages": 3},
    "128 x 256": {"cols": 256},
    "256 x 128": {"rows": 256},
    "256 x 64, 3 stages": {"rows": 256, "cols": 64, "stages": 3},
    "64 x 128, 3 stages": {"rows": 64, "stages": 3},
    "64 x 256": {"rows": 64, "cols": 256},
    "16 lanes": {"lanes": 16},
}
"""Changes to the kernels' `Tiling`."""


def plain(x: Tensor) -> Tensor:
    """Each node's nearest by cosine, itself among them, [N, 6]."""
    unit = F.normalize(x, dim=-1)
    return torch.cat([(rows @ unit.T).topk(PER_NODE + 1, dim=-1).indices for rows in unit.split(CHUNK)])


def with_copies(data: Data, device: torch.device) -> object:
    """Our search from the host's memory and back."""
    return Local(PER_NODE)(data.clone().to(device)).candidate_index.cpu()


def chunked(search: Callable[[], object]) -> object:
    """A search without the screen."""
    with patch.object(screen, "kernels_for", lambda x, wanted: None):
        return search()


@contextmanager
def changed(changes: Mapping[str, int]) -> Iterator[None]:
    """The screen with another tiling; nothing changes where there is no Triton."""
    kernels = import_kernels(screen.KERNELS)
    if kernels is None:
        yield
        return
    with patch.object(kernels, "TILING", replace(kernels.TILING, **changes)):
        yield


def searches(data: Data) -> dict[str, Callable[[], object]]:
    """Ours."""
    return {
        "Local": lambda: Local(PER_NODE)(data),
        "Global, 5 N pairs": lambda: Global(PER_NODE * data.num_nodes)(data),
        "Global, 2 |E| pairs": lambda: Global()(data),
    }


def time_variants(data: Data, rounds: int, device: torch.device) -> None:
    """Print the milliseconds of our searches with each tiling; one that does not run says why."""
    programs = searches(data)
    print(f"{'':24s}" + "".join(f"{name:>22s}" for name in programs))
    for variant, changes in VARIANTS.items():
        with changed(changes):
            try:
                times = harness.medians(harness.alternate(programs, rounds=rounds, warm_up=1, device=device))
            except Exception as error:  # too little shared memory, for one: the others are of interest still
                print(f"{variant:24s}  {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
                continue
        print(f"{variant:24s}" + "".join(f"{1e3 * value:19.2f} ms" for value in times.values()), flush=True)
    for name, times_of in parts(data, rounds, device).items():
        print(f"{name:46s}{1e3 * times_of:19.2f} ms")


def parts(data: Data, rounds: int, device: torch.device) -> dict[str, float]:
    """Seconds of what the searches consist of, on a GPU."""
    kernels: Any = import_kernels(screen.KERNELS)
    if device.type != "cuda" or kernels is None:
        return {}
    x = F.normalize(data.x, dim=-1)
    view = screen.Screen.of(x, kernels)
    tiles, nodes = data.num_nodes // kernels.TILING.cols, data.num_nodes
    high = x.new_full((nodes,), torch.inf)
    some = torch.randint(nodes, (2, 2**20), device=device)
    members, lanes = kernels.TILING.members, kernels.TILING.lanes
    programs = {
        "embeddings in 16 bits and their bounds": lambda: screen.Screen.of(x, kernels),
        "first walk": lambda: kernels.lane_maxima(view.rows, view.cols, view.tile_slack, tiles, 15),
        "second walk that finds nothing": lambda: view.lanes_above(range(nodes), high, 8),
        "walk over half the pairs that finds nothing": lambda: view.lanes_above(range(nodes), high, 8, pairs=True),
        "a million lanes, exactly": lambda: kernels.dots(x, some[0], some[1], members, lanes),
        "a million pairs, exactly": lambda: kernels.dots(x, some[0], some[1]),
    }
    return harness.medians(harness.alternate(programs, rounds=rounds, warm_up=1, device=device))


def main() -> None:
    """Time all and print the ratios."""
    parser = harness.arguments(__doc__, rounds=7)
    parser.add_argument("--variants", action="store_true", help="time our searches with other tiles")
    options = parser.parse_args()
    device = harness.gpu(options)
    rounds = 2 if options.toy else options.rounds
    at_home = problem(300 if options.toy else NODES)
    data = at_home.clone().to(device)
    if options.variants:
        time_variants(data, rounds, device)
        return
    ours = searches(data)
    programs = {
        "plain matmul and topk": lambda: plain(data.x),
        **ours,
        "Local, with copies": lambda: with_copies(at_home, device),
        "Local, chunked": lambda: chunked(ours["Local"]),
        "Global, 5 N pairs, chunked": lambda: chunked(ours["Global, 5 N pairs"]),
    }
    peak = {name: harness.peak_gib(program, device) for name, program in programs.items()}
    times = harness.alternate(programs, rounds=rounds, warm_up=1, device=device)
    facts = {"nodes": data.num_nodes, "features": FEATURES, "edges": data.num_edges, "per node": PER_NODE}
    folder = harness.folder(options)
    harness.report("candidates_gpu", times, "plain matmul and topk", facts, folder, peak_gib=peak)


if __name__ == "__main__":
    main()
