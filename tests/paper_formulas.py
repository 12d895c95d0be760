"""The formulas of the paper as it prints them: plain and slow, over dense matrices, one number at a time.

A[i][j] is the weight of the edge from node i to node j. Nothing of the package is used, so that these functions can
check it. Numbers are tensors, so that torch can differentiate through the loops.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def edge_score(x: Tensor, i: int, j: int, matrix: Tensor, bias: Tensor) -> Tensor:
    """x_i W x_j + b."""
    total = bias
    for f in range(x.shape[1]):
        for g in range(x.shape[1]):
            total = total + x[i, f] * matrix[f, g] * x[j, g]
    return total


def sigmoid(value: Tensor) -> Tensor:
    """1 / (1 + e^−v)."""
    return 1 / (1 + torch.exp(-value))


def edge_probability(x: Tensor, i: int, j: int, matrix: Tensor, bias: Tensor, sigmoids: int) -> Tensor:
    """p(E_ij = 1), with one sigmoid, or with two as printed: θ = sigmoid(x_i W x_j + b), p = sigmoid(θ)."""
    value = edge_score(x, i, j, matrix, bias)
    for _ in range(sigmoids):
        value = sigmoid(value)
    return value


def gumbel_softmax(probability: Tensor, uniform: float, tau: float, hard: bool) -> Tensor:
    """The weight of "edge" against "no edge"; the difference of the two Gumbel numbers is log u − log(1 − u)."""
    noise = math.log(uniform) - math.log(1 - uniform)
    edge = torch.exp((torch.log(probability) + noise) / tau)
    no_edge = torch.exp(torch.log(1 - probability) / tau)
    soft = edge / (edge + no_edge)
    return (soft > 0.5).to(soft) + soft - soft.detach() if hard else soft


def rewired(
    x: Tensor, pairs: list[tuple[int, int]], noise: list[float], matrix: Tensor, bias: Tensor, tau: float, *,
    sigmoids: int, hard: bool,
) -> list[list[Tensor]]:  # fmt: skip
    """Ã: one Bernoulli variable for every pair, 0 elsewhere."""
    none = x.new_zeros(())
    drawn = [[none for _ in x] for _ in x]
    for (i, j), uniform in zip(pairs, noise, strict=True):
        drawn[i][j] = gumbel_softmax(edge_probability(x, i, j, matrix, bias, sigmoids), uniform, tau, hard)
    return drawn


def degree(edges: list[list[Tensor]], i: int) -> Tensor:
    """d_i: the weights of the edges into node i, without a self-loop."""
    return sum((row[i] for row in edges), start=edges[0][0] * 0)


def gcn_layer(hidden: Tensor, edges: list[list[Tensor]], weight: Tensor, bias: Tensor) -> Tensor:
    """Kipf and Welling: Σ_j a_ji / √(d_i d_j) h_j W + b over neighbors and the node itself, which d counts too."""
    out = []
    for i in range(len(hidden)):
        own = 1 + degree(edges, i)
        total = hidden[i] @ weight / own
        for j in range(len(hidden)):
            total = total + edges[j][i] / torch.sqrt(own * (1 + degree(edges, j))) * (hidden[j] @ weight)
        out.append(total + bias)
    return torch.stack(out)


def cross_entropy(logits: Tensor, y: list[int], train: list[int]) -> Tensor:
    """Mean over training nodes of −log softmax(z)_y."""
    each = [torch.log(torch.exp(logits[i]).sum()) - logits[i, y[i]] for i in train]
    return torch.stack(each).mean()


def labels(logits: Tensor, y: list[int], train: list[int]) -> Tensor:
    """ỹ: the one-hot label of training nodes, the one-hot prediction of all others."""
    classes = [y[i] if i in train else int(logits[i].argmax()) for i in range(len(logits))]
    return torch.stack([torch.eye(logits.shape[1], dtype=logits.dtype)[c] for c in classes])


def loss_of_degree(edges: list[list[Tensor]], target: float, tolerance: float) -> Tensor:
    """L_deg."""
    return torch.stack([torch.relu(target - degree(edges, i) + tolerance) ** 2 for i in range(len(edges))]).mean()


def loss_of_labels(edges: list[list[Tensor]], soft: Tensor) -> Tensor:
    """L_label: 1/|Ẽ| Σ (1 − ỹ_i ỹ_j); an edge counts by its weight."""
    total = count = soft.new_zeros(())
    for i in range(len(soft)):
        for j in range(len(soft)):
            total = total + edges[i][j] * (1 - soft[i] @ soft[j])
            count = count + edges[i][j]
    return total / count


def neighborhoods(edges: list[list[Tensor]], soft: Tensor) -> Tensor:
    """p̃: the mean of ỹ over the neighbors and the node itself."""
    rows = []
    for i in range(len(soft)):
        total = soft[i]
        for j in range(len(soft)):
            total = total + edges[j][i] * soft[j]
        rows.append(total / (1 + degree(edges, i)))
    return torch.stack(rows)


def loss_of_neighborhoods(edges: list[list[Tensor]], soft: Tensor) -> Tensor:
    """L_Ncon."""
    return loss_of_labels(edges, neighborhoods(edges, soft))


def normalized_entropy(distribution: Tensor) -> Tensor:
    """H / log |C|, where 0 log 0 is 0."""
    terms = [-p * torch.log(p) for p in distribution if p > 0]
    return torch.stack(terms).sum() / math.log(len(distribution))


def loss_between_classes(edges: list[list[Tensor]], soft: Tensor, of_entropy: Tensor, margin: float) -> Tensor:
    """L_inter with w_v = d_v / max d · H / log |C| and r_c = 1/|V_c| Σ w_v ỹ_v over the nodes of label c.

    The paper takes the entropy of ỹ itself; `of_entropy` is the distribution that it is taken of.
    """
    nodes, classes = soft.shape
    largest = torch.stack([degree(edges, i) for i in range(nodes)]).max()
    weight = [degree(edges, i) / largest * normalized_entropy(of_entropy[i]) for i in range(nodes)]
    prototypes = []
    for c in range(classes):
        members = [i for i in range(nodes) if int(soft[i].argmax()) == c]
        start = soft.new_zeros(classes)
        prototypes.append(sum((weight[i] * soft[i] for i in members), start=start) / max(len(members), 1))
    total = soft.new_zeros(())
    for c in range(classes):
        for other in range(classes):
            if c != other:
                squared = ((prototypes[c] - prototypes[other]) ** 2).sum()
                distance = torch.sqrt(squared) if squared > 0 else squared  # the root has no gradient at 0
                total = total + torch.relu(margin - distance)
    return total / classes
