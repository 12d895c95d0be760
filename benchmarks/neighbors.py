"""How many candidates join nodes of one class? The five nearest nodes of every node, by each similarity.

All labels are used, test nodes included, so do not choose settings by it. The form of `latent` itself was chosen by
such shares, as docs/results/auto.md says.

python benchmarks/neighbors.py
python benchmarks/neighbors.py --only cora,actor
python benchmarks/neighbors.py --toy   # seconds; nothing is written
"""

from __future__ import annotations

import time

import harness  # before torch: it says how torch's threads wait

# isort: split
import gumbel_mpnn as gm
from gumbel_mpnn.candidates.similarity import SIMILARITIES

DATASETS = ("cora", "citeseer", "pubmed", "chameleon", "squirrel", "actor", "blogcatalog", "amazon-computers")
PER_NODE = 5


def share(dataset: str, similarity: str) -> tuple[float, float]:
    """Per cent of the candidates whose nodes have the same class, and the seconds of the search."""
    data = gm.load(dataset)
    begin = time.perf_counter()
    first, second = gm.candidates.Local(PER_NODE, similarity)(data).candidate_index
    seconds = time.perf_counter() - begin
    return 100 * float((data.y[first] == data.y[second]).float().mean()), seconds


def main() -> None:
    """Search, and print a row for each data set."""
    parser = harness.arguments(__doc__, rounds=1)
    parser.add_argument("--only", default="", help="data sets, separated by commas")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else ["wine"] if options.toy else list(DATASETS)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for dataset in names:
        found[dataset] = {}
        for similarity in SIMILARITIES:
            same, seconds = share(dataset, similarity)
            found[dataset][similarity] = {"same class": round(same, 2), "seconds": round(seconds, 2)}
        shown = (f"{name} {of['same class']:5.1f} % in {of['seconds']:5.2f} s" for name, of in found[dataset].items())
        print(f"{dataset:18s} " + "   ".join(shown), flush=True)
    harness.save("neighbors", {"candidates": found}, harness.folder(options))


if __name__ == "__main__":
    main()
