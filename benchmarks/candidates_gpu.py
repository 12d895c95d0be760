"""Each node's five most similar non-neighbors among 169,343 on a GPU: ours beside a plain chunked product and topk.

The features lie on the device. The plain search takes a number of rows at a time, multiplies them with all and keeps
the best six of each by cosine: itself and five more. Unlike ours it leaves no neighbors out and does not order equals.
`Global` looks for the five times N most similar pairs of the whole graph. `Local` once more with the copies to the
device and back.

python benchmarks/candidates_gpu.py          # half a minute on an H200
python benchmarks/candidates_gpu.py --toy    # seconds, on a CPU too; nothing is written
"""

from __future__ import annotations

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from candidates import FEATURES, PER_NODE, problem
from gumbel_mpnn.rewiring.candidates import Global, Local

NODES, CHUNK = 169_343, 4096


def plain(x: Tensor) -> Tensor:
    """Each node's nearest by cosine, itself among them, [N, 6]."""
    unit = F.normalize(x, dim=-1)
    return torch.cat([(rows @ unit.T).topk(PER_NODE + 1, dim=-1).indices for rows in unit.split(CHUNK)])


def with_copies(data: Data, device: torch.device) -> object:
    """Our search from the host's memory and back."""
    return Local(PER_NODE)(data.clone().to(device)).candidate_index.cpu()


def main() -> None:
    """Time all and print the ratios."""
    options = harness.arguments(__doc__, rounds=7).parse_args()
    device = harness.gpu(options)
    at_home = problem(300 if options.toy else NODES)
    data = at_home.clone().to(device)
    programs = {
        "plain matmul and topk": lambda: plain(data.x),
        "Local": lambda: Local(PER_NODE)(data),
        "Global, 5 N pairs": lambda: Global(PER_NODE * data.num_nodes)(data),
        "Local, with copies": lambda: with_copies(at_home, device),
    }
    peak = {name: harness.peak_gib(program, device) for name, program in programs.items()}
    times = harness.alternate(programs, rounds=2 if options.toy else options.rounds, warm_up=1, device=device)
    facts = {"nodes": data.num_nodes, "features": FEATURES, "edges": data.num_edges, "per node": PER_NODE}
    folder = harness.folder(options)
    harness.report("candidates_gpu", times, "plain matmul and topk", facts, folder, peak_gib=peak)


if __name__ == "__main__":
    main()
