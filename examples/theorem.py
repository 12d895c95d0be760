"""The paper's theorem in numbers: how close can one layer embed two nodes of the same class?

For the layer h_i = W · mean of x over the neighbors of i, without an activation, the theorem states

    E‖h_i - h_j‖ ≥ σ_min(W) · ‖E[x | D_i] - E[x | D_j]‖

where D_i is the label distribution around node i and the features are drawn independently from the distributions of
their classes. If W maps to fewer channels than there are features, σ_min(W) is 0 and the bound is vacuous. On the span
of the class means, which contains every difference in the proof, the smallest singular value is rarely 0.

python examples/theorem.py
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import gumbel_mpnn as gm


@dataclass(frozen=True)
class Bounds:
    """Lower bounds on E‖h_i - h_j‖, float64 [K] each, from weak to strong."""

    printed: Tensor
    """The theorem as printed, with the smallest singular value of W on all of R^d."""
    on_class_means: Tensor
    """The bound with the smallest singular value of W on the span of the differences of class means."""
    expected: Tensor
    """Distance of the expected embeddings, the line of the proof before σ_min comes in."""


def theorem_bounds(
    data: Data, weight: Tensor, pairs: Tensor, class_means: Tensor | None = None, own_label: bool = False
) -> Bounds:
    """Bounds for some pairs of nodes of the same class.

    Args:
        data: A graph with labels `y` [N] and, unless `class_means` is given, features `x` [N, d].
        weight: The matrix W of the layer, [h, d].
        pairs: The nodes i and j, int64 [2, K]; each has a labelled neighbor.
        class_means: E[x | class], [C, d]; estimated from the labelled nodes by default.
        own_label: Whether the layer includes the node itself in the mean.
    """
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
    generator = torch.Generator().manual_seed(seed)
    classes = int(data.y.max()) + 1
    pairs = nodes[torch.randint(len(nodes), (2, 4 * classes * count), generator=generator)]
    return pairs[:, (data.y[pairs[0]] == data.y[pairs[1]]) & (pairs[0] != pairs[1])][:, :count]


def main(count: int = 1000) -> list[Bounds]:
    """Print the mean bounds on the demo graph for a wide and a narrow layer with random weights."""
    torch.manual_seed(0)
    data = gm.data.demo_graph()
    pairs = same_class_pairs(data, count)
    found = []
    for channels in (64, 8):
        bounds = theorem_bounds(data, GCNConv(data.num_features, channels).lin.weight, pairs)
        found.append(bounds)
        print(
            f"{data.num_features} features to {channels} channels: the bound is {bounds.printed.mean():.3f}, "
            f"on the class means {bounds.on_class_means.mean():.3f}, "
            f"the expected embeddings are {bounds.expected.mean():.3f} apart"
        )
    return found


if __name__ == "__main__":
    main()
