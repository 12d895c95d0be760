"""SDRF: rewiring by stochastic discrete Ricci flow."""

from gumbel_mpnn.baselines.sdrf.flow import Flow
from gumbel_mpnn.baselines.sdrf.model import SDRFModel
from gumbel_mpnn.baselines.sdrf.transform import SDRF, SDRFOfEachGraph

__all__ = ["SDRF", "Flow", "SDRFModel", "SDRFOfEachGraph"]
