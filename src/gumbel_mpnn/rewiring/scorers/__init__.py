"""Edge models: one module each."""

from gumbel_mpnn.rewiring.scorers.base import NodeView, Scorer, scorers
from gumbel_mpnn.rewiring.scorers.bilinear import Bilinear
from gumbel_mpnn.rewiring.scorers.class_space import ClassSpace
from gumbel_mpnn.rewiring.scorers.mixed import Mixed
from gumbel_mpnn.rewiring.scorers.neighborhood import Neighborhood

__all__ = ["Bilinear", "ClassSpace", "Mixed", "Neighborhood", "NodeView", "Scorer", "scorers"]
