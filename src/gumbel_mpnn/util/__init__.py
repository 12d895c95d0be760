"""Helpers that know nothing of graphs: errors, files, tensors, compiled functions."""

from gumbel_mpnn.util.errors import DivergedError, MissingDataError, UserError, counted, unknown_name
from gumbel_mpnn.util.files import none_if_nan, write_atomically

__all__ = [
    "DivergedError",
    "MissingDataError",
    "UserError",
    "counted",
    "none_if_nan",
    "unknown_name",
    "write_atomically",
]
