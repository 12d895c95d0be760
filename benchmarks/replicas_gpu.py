"""A hundred runs of Cora at once on a GPU, against PyG training them one after the other; evaluation included.

GCN of 2 layers of 256 and Gumbel-MPNN with five local candidates for each node, 10 splits x 10 seeds. An epoch is one
full-batch step and one evaluation on validation, for ours with the best states kept. The peer has dense features on the
device, a cached normalisation, a fused Adam, and never waits for the device; once more as a CUDA graph, which is what
a PyG user could do at best. Products are in TF32 for all. All programs alternate in one process; each sample is a
number of epochs without set-up, which is timed apart.

python benchmarks/replicas_gpu.py         # Cora where its files are, else a generated graph of its size
python benchmarks/replicas_gpu.py --toy   # seconds, on a CPU too; nothing is written
"""

from __future__ import annotations

import math
from collections.abc import Callable

import harness  # before torch: it says how torch's threads wait

# isort: split
import torch
from torch import Tensor
from torch_geometric.data import Data

import gumbel_mpnn as gm
import peers
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.settings import Replica
from gumbel_mpnn.training import Task, roc_auc
from gumbel_mpnn.training.captured import Replay
from gumbel_mpnn.training.trainer import Trainer

SPLITS, SEEDS, LAYERS, PER_NODE = 10, 10, 2, 5
COUNTS = (1, 2, 5, 10, 20, 50, 100)
MODELS = {"gcn": "GCN", "gumbel-mpnn": "Gumbel-MPNN"}
CHANNELS = 64
WARM_UP = 5
"""Epochs before the first sample: three plain ones, the captures, and one replayed."""
MINESWEEPER = 10_000

Epoch = Callable[[], None]


def cora(device: torch.device, toy: bool) -> tuple[str, Data]:
    """Cora with its ten splits, or a graph with its counts; each pair stands once."""
    if not toy:
        try:
            name, data = "cora", gm.load("cora")
        except gm.UserError:
            name, data = "generated, of cora's size", generated(2708, 5278, 1433, 18, 7)
    else:
        name, data = "generated", generated(60, 120, 30, 4, 3)
    data.edge_index = gm.PairGraph.of(data).pair_index
    return name, gm.candidates.Local(per_node=PER_NODE)(data).to(device)


def generated(nodes: int, edges: int, features: int, words: int, classes: int) -> Data:
    """Random edges, `words` features of 1 for each node, ten random splits."""
    generator = torch.Generator().manual_seed(0)
    x = torch.zeros(nodes, features).scatter_(1, torch.randint(features, (nodes, words), generator=generator), 1.0)
    share = torch.rand(nodes, SPLITS, generator=generator)
    return Data(
        x=x,
        y=torch.arange(nodes) % classes,
        edge_index=torch.randint(nodes, (2, edges), generator=generator),
        train_mask=share < 0.48,
        val_mask=(share >= 0.48) & (share < 0.8),
        test_mask=share >= 0.8,
    )


def ours(data: Data, model: str, width: int, replicas: list[Replica]) -> Epoch:
    """An epoch of our trainer."""
    chosen = [f"model.hidden_channels={width}", f"model.num_layers={LAYERS}", f"model.dropout={peers.DROPOUT}"]
    chosen += ["train.patience=0"]
    if model == "gumbel-mpnn":
        chosen += [f"rewiring.scorer.channels={CHANNELS}", "rewiring.scorer=bilinear", "rewiring.prior=0"]
    settings = RunSpec.of(data, model, preset=None, overrides=chosen).settings
    task = Task.of(data, settings, data.x.device)
    trainer = Trainer(task, settings, replicas)

    def epoch() -> None:
        trainer.step()
        trainer.evaluate()

    return epoch


def pyg(data: Data, model: str, width: int, *, captured: bool = False) -> Epoch:
    """An epoch of one run by PyG's layers."""
    classes = int(data.y.max()) + 1
    if model == "gcn":
        plain = peers.PlainGCN(data.num_features, width, classes, LAYERS)
        run = peers.Training(plain, data, peers.both_ways(data.edge_index), capturable=captured)
    else:
        rewired = peers.PlainGumbel(data.num_features, width, classes, LAYERS, CHANNELS, factorised=False)
        run = peers.Training(rewired, data, *peers.all_pairs(data))
    step, evaluate = run.step, run.evaluate
    if captured:
        step, evaluate = Replay(step, data.x.device), Replay(evaluate, data.x.device)
    history: list[Tensor] = []

    def epoch() -> None:
        step()
        evaluate()
        history.append(run.val.clone())

    return epoch


def programs(data: Data, width: int, counts: tuple[int, ...]) -> dict[str, tuple[int, Callable[[], Epoch]]]:
    """How many runs each program trains at once, and how it is built."""
    replicas = [Replica(split, seed) for seed in range(SEEDS) for split in range(SPLITS)]
    built: dict[str, tuple[int, Callable[[], Epoch]]] = {}
    for model, title in MODELS.items():
        built[f"PyG {title}"] = 1, lambda model=model: pyg(data, model, width)
        if model == "gcn" and data.x.is_cuda:
            built[f"PyG {title}, CUDA graph"] = 1, lambda model=model: pyg(data, model, width, captured=True)
        for count in counts:
            runs = replicas[:count]
            built[name_of(title, count)] = count, lambda model=model, runs=runs: ours(data, model, width, runs)
    return built


def name_of(title: str, count: int) -> str:
    """What a program of ours is called."""
    return f"our {title}, {count} at once"


def time_metric(device: torch.device, toy: bool, rounds: int) -> dict[str, float]:
    """Exact ROC-AUC of a hundred runs: ours on the device, scikit-learn's run after run, the copies to it included."""
    from sklearn.metrics import roc_auc_score

    nodes, runs = (80, 3) if toy else (MINESWEEPER, 100)
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(runs, nodes, 2, generator=generator).to(device)
    y = (torch.rand(nodes, generator=generator) < 0.2).long().to(device)
    mask = (torch.rand(runs, nodes, generator=generator) < 0.25).to(device)

    def scikit_learn() -> list[float]:
        score, labels, where = (logits[..., 1] - logits[..., 0]).cpu().numpy(), y.cpu().numpy(), mask.cpu().numpy()
        return [roc_auc_score(labels[at], each[at]) for each, at in zip(score, where, strict=True)]

    difference = (roc_auc(logits, y, mask).cpu() - torch.tensor(scikit_learn(), dtype=torch.float64)).abs().max()
    if difference > 1e-9:
        raise SystemExit(f"our ROC-AUC and scikit-learn's differ by {float(difference)}")
    times = harness.alternate(
        {"ours": lambda: roc_auc(logits, y, mask), "scikit-learn": scikit_learn}, rounds=rounds, device=device
    )
    median = harness.medians(times)
    return {
        "nodes": nodes,
        "runs": runs,
        "ours_ms": 1e3 * median["ours"],
        "scikit_learn_ms": 1e3 * median["scikit-learn"],
        "times_faster": median["scikit-learn"] / median["ours"],
    }


def main() -> None:
    """Build all, let them alternate, and print throughputs and their ratios."""
    parser = harness.arguments(__doc__, rounds=5)
    parser.add_argument("--epochs", type=int, default=20, help="epochs of a sample")
    options = parser.parse_args()
    device = harness.gpu(options)
    counts, width = ((1, 3), 8) if options.toy else (COUNTS, 256)
    epochs, rounds = (2, 2) if options.toy else (options.epochs, options.rounds)
    name, data = cora(device, options.toy)
    at_once: dict[str, int] = {}
    set_up: dict[str, float] = {}
    left_out: dict[str, str] = {}
    samples: dict[str, Callable[[], object]] = {}
    with harness.tf32(True):
        for program, (count, build) in programs(data, width, counts).items():
            start = harness.now(device)
            try:
                epoch = build()
                for _ in range(WARM_UP):
                    epoch()
            except RuntimeError as error:  # out of memory, or a program that cannot be captured
                left_out[program] = str(error).splitlines()[0]
                print(f"  {program} is left out: {left_out[program]}")
                continue
            set_up[program], at_once[program] = harness.now(device) - start, count
            samples[program] = lambda epoch=epoch: [epoch() for _ in range(epochs)]
        times = harness.alternate(samples, rounds=rounds, warm_up=1, device=device)
    metric = time_metric(device, options.toy, rounds)
    per_epoch = {program: value / (epochs * at_once[program]) for program, value in harness.medians(times).items()}
    many = counts[-1]
    ratios = {}
    for title in MODELS.values():
        best = per_epoch.get(name_of(title, many), math.nan)
        against = [f"PyG {title}", f"PyG {title}, CUDA graph", name_of(title, 1)]
        ratios[title] = {peer: per_epoch[peer] / best for peer in against if peer in per_epoch}
    print(f"replicas_gpu: graph {name}, {many} runs, {LAYERS} x {width}, epochs with evaluation")
    for program, value in per_epoch.items():
        print(f"  {program:32s} {1e3 * value:9.3f} ms a run and epoch   {1 / value:10.0f} runs x epochs a second")
    for title, row in ratios.items():
        for peer, ratio in row.items():
            print(f"  {name_of(title, many)}: {ratio:.1f} times {peer}")
    print(
        f"  ROC-AUC of {metric['runs']} runs on {metric['nodes']} nodes: {metric['ours_ms']:.2f} ms,"
        f" scikit-learn {metric['scikit_learn_ms']:.2f} ms, {metric['times_faster']:.0f} times"
    )
    result = {
        "facts": {
            "graph": name,
            "nodes": data.num_nodes,
            "edges": data.edge_index.shape[1],
            "candidates": data.candidate_index.shape[1],
            "features": data.num_features,
            "layers": f"{LAYERS} x {width}",
            "epochs of a sample": epochs,
        },
        "ms_per_run_and_epoch": {program: 1e3 * value for program, value in per_epoch.items()},
        "at_once": at_once,
        "set_up_s": set_up,
        "times_the_throughput_of": ratios,
        "roc_auc": metric,
        "left_out": left_out,
        "rounds": rounds,
    }
    harness.save("replicas_gpu", result, harness.folder(options))


if __name__ == "__main__":
    main()
