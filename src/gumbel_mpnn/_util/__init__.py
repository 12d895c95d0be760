"""Helpers that know nothing of graphs: errors, files, locks, caches, compiled functions."""
