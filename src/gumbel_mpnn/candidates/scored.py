"""Pairs with their similarity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gumbel_mpnn.candidates.similarity import sortable


@dataclass(frozen=True, eq=False)
class Scored:
    """Pairs `i < j` with their similarity."""

    score: Tensor
    """float32 [K]."""
    pairs: Tensor
    """int64 [2, K]."""

    def __getitem__(self, which: Tensor | slice) -> Scored:
        """Some of the pairs."""
        return Scored(self.score[which], self.pairs[:, which])

    def __len__(self) -> int:
        return self.score.numel()

    def in_order(self) -> Scored:
        """Best first; of equals the nearest numbers, then the lowest."""
        first, second = self.pairs
        by_number = first.argsort()
        key = sortable(self.score, second - first)[by_number]
        return self[by_number[key.argsort(descending=True, stable=True)]]

    @staticmethod
    def join(parts: Sequence[Scored]) -> Scored:
        """One list after the other."""
        return Scored(torch.cat([part.score for part in parts]), torch.cat([part.pairs for part in parts], dim=1))
