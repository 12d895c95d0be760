"""Rewiring: which pairs of nodes may be edges, how likely each is, and drawing them."""
