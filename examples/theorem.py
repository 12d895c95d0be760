"""The paper's theorem in numbers: how close can one layer embed two nodes of the same class?

For the layer h_i = W · mean of x over the neighbors of i, E‖h_i - h_j‖ ≥ σ_min(W) · ‖E[x | D_i] - E[x | D_j]‖, where
D_i is the label distribution around node i. If W maps to fewer channels than there are features, σ_min(W) is 0. On the
span of the class means, which contains every difference in the proof, it is rarely 0.

python examples/theorem.py
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import gumbel_mpnn as gm


class Bounds(NamedTuple):
    """Lower bounds on E‖h_i - h_j‖, float64 [K] each, from weak to strong."""

    printed: Tensor  # as printed, with the smallest singular value of W on all of R^d
    on_class_means: Tensor  # with that on the span of the differences of class means
    expected: Tensor  # the distance of the expected embeddings, the line of the proof before σ_min comes in


def theorem_bounds(
    data: Data, weight: Tensor, pairs: Tensor, class_means: Tensor | None = None, own_label: bool = False
) -> Bounds:
    """Bounds for `pairs` [2, K] of one class and W = `weight` [h, d]; with `own_label`, a node is in its own mean."""
    rows = gm.measures.neighborhood_distributions(data, own_label)
    weight = weight.detach().double()
    means = mean_features(data) if class_means is None else class_means.double()
    difference = (rows[pairs[0]] - rows[pairs[1]]) @ means
    distance = torch.linalg.vector_norm(difference, dim=1)
    _, size, directions = torch.linalg.svd(means - means.mean(0), full_matrices=False)
    span = directions[size > max(means.shape) * torch.finfo(size.dtype).eps * size[0]]
    return Bounds(
        printed=smallest_singular_value(weight) * distance,
        on_class_means=smallest_singular_value(weight @ span.T) * distance,
        expected=torch.linalg.vector_norm(difference @ weight.T, dim=1),
    )


def smallest_singular_value(weight: Tensor) -> float:
    """The smallest ‖W v‖ over unit vectors v: 0 if W [h, d] has fewer rows than columns."""
    rows, cols = weight.shape
    return float(torch.linalg.svdvals(weight)[-1]) if rows >= cols > 0 else 0.0


def mean_features(data: Data) -> Tensor:
    """Mean features of the labelled nodes of each class, float64 [C, d]."""
    return torch.stack([data.x[data.y == label].double().mean(0) for label in range(int(data.y.max()) + 1)])


def same_class_pairs(data: Data, count: int, seed: int = 0) -> Tensor:
    """Up to `count` random pairs of different nodes of one class that both have a labelled neighbor, int64 [2, K]."""
    usable = (data.y >= 0) & (gm.measures.neighborhood_distributions(data, own_label=False).sum(1) > 0)
    nodes = usable.nonzero().squeeze(1)
    drawn = (2, 4 * count * (int(data.y.max()) + 1))
    pairs = nodes[torch.randint(len(nodes), drawn, generator=torch.Generator().manual_seed(seed))]
    return pairs[:, (data.y[pairs[0]] == data.y[pairs[1]]) & (pairs[0] != pairs[1])][:, :count]


def main(count: int = 1000) -> list[Bounds]:
    """Print the mean bounds on the demo graph for a wide and a narrow layer with random weights."""
    torch.manual_seed(0)
    data = gm.data.demo_graph()
    pairs = same_class_pairs(data, count)
    wide, narrow = (theorem_bounds(data, GCNConv(data.num_features, to).lin.weight, pairs) for to in (64, 8))
    for name, bounds in (("64", wide), ("8", narrow)):
        means = ", ".join(f"{key} {values.mean():.3f}" for key, values in bounds._asdict().items())
        print(f"{data.num_features} features to {name} channels: {means}")
    return [wide, narrow]


if __name__ == "__main__":
    main()
