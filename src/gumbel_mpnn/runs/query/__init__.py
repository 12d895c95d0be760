"""The index of all runs, its filters and exports."""
