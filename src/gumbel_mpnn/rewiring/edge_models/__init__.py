"""Edge models, which score pairs of nodes; one module each."""

from gumbel_mpnn.rewiring.edge_models.base import BeliefHead, NodeView, Scorer, scorers
from gumbel_mpnn.rewiring.edge_models.bilinear import Bilinear
from gumbel_mpnn.rewiring.edge_models.class_facts import ClassFacts
from gumbel_mpnn.rewiring.edge_models.class_space import ClassSpace
from gumbel_mpnn.rewiring.edge_models.constant import Constant
from gumbel_mpnn.rewiring.edge_models.literal import Literal
from gumbel_mpnn.rewiring.edge_models.mixed import Mixed
from gumbel_mpnn.rewiring.edge_models.neighborhood import Neighborhood

__all__ = [
    "BeliefHead",
    "Bilinear",
    "ClassFacts",
    "ClassSpace",
    "Constant",
    "Literal",
    "Mixed",
    "Neighborhood",
    "NodeView",
    "Scorer",
    "scorers",
]
