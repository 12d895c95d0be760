"""The same models as a PyG user writes them: GCN, and Gumbel rewiring, trained one run at a time."""

from __future__ import annotations

import math
import warnings

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import to_torch_csr_tensor

from gumbel_mpnn.settings import RewiringSettings

DROPOUT = 0.5
IGNORED = -100
"""The label of nodes that are not trained on."""


class PlainGCN(nn.Module):
    """Our stack written with PyG's layers; the normalisation is cached unless the edges' weights change."""

    def __init__(self, in_channels: int, hidden: int, out_channels: int, layers: int, *, cached: bool = True) -> None:
        super().__init__()
        widths = [in_channels] + [hidden] * layers
        self.convs = nn.ModuleList(
            pyg.GCNConv(width, hidden, cached=cached, add_self_loops=True) for width in widths[:-1]
        )
        self.head = nn.Linear(hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits [N, C]."""
        for conv in self.convs:
            x = F.dropout(conv(x, edge_index, edge_weight).relu(), DROPOUT, self.training)
        return self.head(x)


class PlainGumbel(nn.Module):
    """A bilinear score of every pair, one Gumbel-softmax draw, PyG's GCN on the drawn weights.

    With `factorised`, the score is (h W)_i · h_j in place of `nn.Bilinear`, which makes an array of pairs x channels
    more. Each pair is scored and drawn once and serves both directions, as in our own model.
    """

    def __init__(
        self, in_channels: int, hidden: int, out_channels: int, layers: int, channels: int, *, factorised: bool
    ) -> None:
        super().__init__()
        usual = RewiringSettings()
        self.factorised, self.tau = factorised, usual.tau
        self.keep, self.add = (math.log(share / (1 - share)) for share in (usual.keep, usual.add))
        self.encoder = nn.Linear(in_channels, channels, bias=False)
        self.bilinear = nn.Bilinear(channels, channels, 1)
        self.gcn = PlainGCN(in_channels, hidden, out_channels, layers, cached=False)

    def forward(self, x: Tensor, pairs: Tensor, given: Tensor) -> Tensor:
        """Logits [N, C] on one drawn graph, or in evaluation on the graph weighed by probability."""
        source, target = pairs
        hidden = F.normalize(self.encoder(x), dim=-1)
        if self.factorised:
            score = ((hidden @ self.bilinear.weight[0])[source] * hidden[target]).sum(-1) + self.bilinear.bias
        else:
            score = self.bilinear(hidden[source], hidden[target]).squeeze(-1)
        theta = score + torch.where(given, self.keep, self.add)
        if self.training:
            weight = F.gumbel_softmax(torch.stack([theta, torch.zeros_like(theta)], -1), self.tau, hard=True)[:, 0]
        else:
            weight = theta.sigmoid()
        return self.gcn(x, both_ways(pairs), weight.repeat(2))


def both_ways(pairs: Tensor) -> Tensor:
    """The arcs [2, 2 P] of pairs [2, P]."""
    return torch.cat([pairs, pairs.flip(0)], 1)


def as_matrix(arcs: Tensor, nodes: int) -> Tensor:
    """The arcs as the sparse CSR matrix (rows are targets) that PyG's layers multiply with as a whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that its CSR tensors are in beta
        return to_torch_csr_tensor(arcs.flip(0), size=(nodes, nodes))


def all_pairs(data: Data) -> tuple[Tensor, Tensor]:
    """Edges and candidates of a graph that has each of its pairs once, and which of them are edges."""
    pairs = torch.cat([data.edge_index, data.candidate_index], 1)
    return pairs, torch.arange(pairs.shape[1], device=pairs.device) < data.edge_index.shape[1]


class Training:
    """Full-batch training of one run by hand, with nothing that waits for the device.

    Nodes outside the training set are ignored by their label, the optimizer is fused on a GPU, and the value on
    validation stays there. Unlike our `Trainer`, it keeps no best state.
    """

    def __init__(self, model: nn.Module, data: Data, *inputs: Tensor, split: int = 0, capturable: bool = False) -> None:
        self.model, self.y, self.inputs = model.to(data.x.device), data.y, (data.x, *inputs)
        on_gpu = data.x.is_cuda
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=1e-3, fused=on_gpu, foreach=not on_gpu, capturable=capturable
        )
        train, self.val_mask = (
            mask if mask.dim() == 1 else mask[:, split].contiguous() for mask in (data.train_mask, data.val_mask)
        )
        self.target = torch.where(train, data.y, IGNORED)
        self.val = torch.zeros((), device=data.x.device)

    def step(self) -> None:
        """Forward, backward, Adam."""
        self.model.train()
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(*self.inputs), self.target, ignore_index=IGNORED).backward()
        self.optimizer.step()

    @torch.no_grad()
    def evaluate(self) -> None:
        """Accuracy on validation."""
        self.model.eval()
        correct = (self.model(*self.inputs).argmax(-1) == self.y) & self.val_mask
        self.val.copy_(correct.sum() / self.val_mask.sum())
