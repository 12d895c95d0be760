"""Regularizers: terms of the loss that favor certain rewired graphs."""

from gumbel_mpnn.rewiring.regularizers.base import Regularizer, Sum, regularizers
from gumbel_mpnn.rewiring.regularizers.between_samples import agreement
from gumbel_mpnn.rewiring.regularizers.degree import Degree
from gumbel_mpnn.rewiring.regularizers.inter_class import InterClass
from gumbel_mpnn.rewiring.regularizers.label_consistency import LabelConsistency
from gumbel_mpnn.rewiring.regularizers.mix import Mix
from gumbel_mpnn.rewiring.regularizers.neighborhood_consistency import NeighborhoodConsistency
from gumbel_mpnn.rewiring.regularizers.prior import Prior

__all__ = [
    "Degree",
    "InterClass",
    "LabelConsistency",
    "Mix",
    "NeighborhoodConsistency",
    "Prior",
    "Regularizer",
    "Sum",
    "agreement",
    "regularizers",
]
