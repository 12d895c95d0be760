"""What can be said of a graph and its labels: homophily, neighborhoods, mixtures, curvature, spectra, degrees."""

from gumbel_mpnn.measures.curvature import balanced_forman

__all__ = ["balanced_forman"]
