"""What can be said of a graph and its labels: homophily, neighborhoods, mixtures, curvature, spectra, degrees."""
