"""Mixtures per class with the lowest BIC: ours against scikit-learn's GaussianMixture for every class and k = 1..25.

python benchmarks/mixtures.py           # cora beside scikit-learn, then all ten data sets of the mixtures page
python benchmarks/mixtures.py --toy     # seconds, for the tests; nothing is written

Needs the data sets' files (GUMBEL_MPNN_DATA). Both have the same number of starts, tolerance and regularization, and
take turns in one process, on one thread: problems this small only wait for a second one. BIC is compared at the number
of components that ours chooses and at scikit-learn's own best.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings

import harness  # before torch: it sets how threads wait

# isort: split
import numpy as np
import torch
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits
from torch_geometric.data import Data

from gumbel_mpnn.data import load
from gumbel_mpnn.measures import decompose, neighborhood_distributions
from gumbel_mpnn.paper import analyses

STARTS, TOL, MAX_COMPONENTS = 5, 1e-3, 25


def toy() -> Data:
    """A random graph of 60 nodes and two classes."""
    edge_index = torch.randint(60, (2, 150), generator=torch.Generator().manual_seed(0))
    return Data(edge_index=edge_index, y=torch.arange(60) % 2, num_nodes=60)


def double_loop(data: Data, reg_covar: float, seed: int, max_components: int) -> np.ndarray:
    """The BIC of scikit-learn's mixture for every class and number of components, [C, k]."""
    rows, y = neighborhood_distributions(data).numpy(), data.y.numpy()
    options = {"n_init": STARTS, "tol": TOL, "reg_covar": reg_covar, "random_state": seed}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return np.array(
            [
                [GaussianMixture(k, **options).fit(members).bic(members) for k in range(1, max_components + 1)]
                for members in (rows[y == label] for label in range(y.max() + 1))
            ]
        )


def compare(data: Data, reg_covar: float, rounds: int, max_components: int) -> dict[str, object]:
    """Seconds of both and how their BIC differ, one seed after the other."""
    ours_s, theirs_s, at_ours, at_best = [], [], [], []
    for seed in range(rounds):
        start = time.perf_counter()
        found = decompose(
            data, seeds=[seed], starts=STARTS, tol=TOL, reg_covar=reg_covar, max_components=max_components
        )
        between = time.perf_counter()
        bic = double_loop(data, reg_covar, seed, max_components)
        ours_s.append(between - start)
        theirs_s.append(time.perf_counter() - between)
        chosen = [bic[label, k - 1] for label, k in enumerate(found.num_components)]
        at_ours.append(max(ours - theirs for ours, theirs in zip(found.bic, chosen, strict=True)))
        at_best.append(sum(found.bic) - float(bic.min(1).sum()))
    ours, theirs = statistics.median(ours_s), statistics.median(theirs_s)
    print(f"  reg_covar {reg_covar:.0e}: ours {ours:.2f} s, scikit-learn {theirs:.2f} s, {theirs / ours:.1f} times")
    print(f"    BIC, ours less scikit-learn's, at most: {max(at_ours):.1f} for a class at our number of components,")
    print(f"    {max(at_best):.1f} for all classes, each at its own best number")
    return {
        "reg_covar": reg_covar,
        "ours_s": ours_s,
        "scikit_learn_s": theirs_s,
        "times_faster": theirs / ours,
        "largest_bic_difference_of_a_class_at_our_k": max(at_ours),
        "largest_bic_difference_of_all_classes_at_their_best_k": max(at_best),
    }


def all_data_sets() -> dict[str, float]:
    """Seconds for one seed of every data set of the mixtures page."""
    seconds = {}
    for name in analyses["mixtures"].datasets:
        data = load(name, features=False)
        start = time.perf_counter()
        found = decompose(data, seeds=1)
        seconds[name] = time.perf_counter() - start
        print(f"  {name:24s} {seconds[name]:6.1f} s   {found.total} components of {len(found.mixtures)} classes")
    print(f"  all ten: {sum(seconds.values()):.1f} s")
    return seconds


def main() -> None:
    """Compare on cora, then time all data sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.toy:
        compare(toy(), 1e-4, rounds=1, max_components=3)
        return
    data = load("cora", features=False)
    decompose(data, seeds=1, max_components=3)  # warms up
    print(f"mixtures: cora, {STARTS} starts, tolerance {TOL}, k = 1..{MAX_COMPONENTS}")
    compared = [compare(data, reg_covar, options.rounds, MAX_COMPONENTS) for reg_covar in (1e-4, 1e-6)]
    result = {
        "benchmark": "mixtures",
        "facts": {"graph": "cora", "starts": STARTS, "tol": TOL, "max_components": MAX_COMPONENTS},
        "compared": compared,
        "all_data_sets_s": all_data_sets(),
        "machine": harness.machine(),
    }
    harness.RESULTS.mkdir(exist_ok=True)
    (harness.RESULTS / "mixtures.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
