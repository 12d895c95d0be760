"""What has no word of graphs in it: errors, files, locks, caches, compiled functions."""
