"""What can be said of a graph and its labels: homophily, neighborhoods, mixtures, curvature, spectra, degrees."""

from gumbel_mpnn.measures.neighborhoods import neighborhood_distributions, std_per_class

__all__ = ["neighborhood_distributions", "std_per_class"]
