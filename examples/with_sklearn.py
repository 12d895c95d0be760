"""Gumbel-MPNN as a scikit-learn classifier: cross-validation of two models with the tools you know.

python examples/with_sklearn.py
"""

import numpy as np
import sklearn
from scipy.sparse import csr_array
from sklearn.model_selection import cross_val_score

import gumbel_mpnn as gm


def main(epochs: int = 60, folds: int = 3) -> dict[str, float]:
    """Cross-validate a GCN and Gumbel-MPNN on the demo graph; returns the mean accuracy of each."""
    data = gm.data.demo_graph()
    X, y, n = data.x.numpy(), data.y.numpy(), data.num_nodes
    edges = csr_array((np.ones(data.num_edges), data.edge_index.numpy()), shape=(n, n))
    params = {"edges": edges, "rows": np.arange(n)}  # scikit-learn takes X apart: rows says which nodes it passes on
    found = {}
    with sklearn.config_context(enable_metadata_routing=True):
        for name, settings in (("gcn", None), ("gumbel-mpnn", {"rewiring": {"origin": "none"}})):
            options = {"settings": settings, "overrides": [f"train.epochs={epochs}"], "random_state": 0}
            model = gm.sklearn.RewiringClassifier(name, **options)
            model.set_fit_request(edges=True, rows=True).set_score_request(edges=True, rows=True)
            scores = cross_val_score(model, X, y, cv=folds, params=params)
            found[name] = float(scores.mean())
            print(f"{name:<12} {100 * scores.mean():.1f} % ± {100 * scores.std():.1f} over {folds} folds")
    return found


if __name__ == "__main__":
    main()
