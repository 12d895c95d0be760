"""From two CSV files to predictions, suspicious edges and a cleaned graph.

python examples/own_data.py nodes.csv edges.csv class

The file of nodes has an id, the column to be predicted (empty where it is not known) and features. The file of edges
has the columns source and target. The results are written beside the file of nodes.
"""

import sys
from pathlib import Path
from typing import Any

import gumbel_mpnn as gm


def main(nodes: str, edges: str, label: str, **options: Any) -> gm.Run:
    """Train, predict, audit and clean; `options` go to `gm.fit`, such as `splits=range(3)`."""
    data = gm.from_csv(nodes, edges, label=label)
    run = gm.fit(data, **options)  # auto: plain models and rewirings, chosen on validation
    print(run.choice.sentence() if run.choice else f"test {run.test}")

    folder = Path(nodes).parent
    run.predictions().to_csv(folder / "predictions.csv", index=False)  # trust the column out_of_fold
    audit = run.audit()
    audit.edges.to_csv(folder / "edges-ranked.csv", index=False)  # the most suspicious edges first
    audit.missing.to_csv(folder / "missing-edges.csv", index=False)
    print(audit.edges.head(10).to_string(index=False))

    # What you delete is your choice: here, the most suspicious tenth.
    kept = audit.edges.iloc[len(audit.edges) // 10 :]
    kept.to_csv(folder / "edges-cleaned.csv", index=False)
    print(f"kept {len(kept)} of {len(audit.edges)} edges; all files are in {folder}")
    return run


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
