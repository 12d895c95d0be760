"""Applies the candidate strategy of the settings."""

from __future__ import annotations

import copy
import warnings

from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, DataWarning
from gumbel_mpnn.candidates.base import CandidateStrategy, candidates
from gumbel_mpnn.candidates.cache import Cached
from gumbel_mpnn.config import RewiringSettings
from gumbel_mpnn.graph import without_candidates
from gumbel_mpnn.nn.standardize import column_statistics

DATA = "data"
"""Value of `rewiring.candidates` for the candidates of the data."""
NONE = "none"
"""Value of `rewiring.candidates` for the given edges only."""


def with_candidates(data: Data, settings: RewiringSettings, standardized: bool = False, partitions: int = 1) -> Data:
    """Graph with the candidates that `settings` ask for, and no others.

    If `standardized`, strategies see features that are standardized over all nodes. This uses no label, and so
    candidates are the same for all splits. `partitions` is the number of parts of strategies that search by parts.
    """
    if settings.candidates == DATA:
        if data.get("candidate_index") is None:
            raise DataError(
                "rewiring.candidates is 'data', but this graph has none: give it data.candidate_index, which may be"
                " empty, or choose a strategy before training"
            )
        return data
    data = without_candidates(data)
    if settings.candidates == NONE:
        return data
    standardized &= data.get("x") is not None  # a strategy that needs features says so itself
    with_them: Data = Cached(chosen_strategy(settings, partitions))(_standardized(data) if standardized else data)
    if standardized:
        with_them.x = data.x
    if with_them.candidate_index.numel() == 0:
        warnings.warn(
            f"the strategy {settings.candidates!r} finds no candidates here: edges can be dropped, but none added",
            DataWarning,
            stacklevel=2,
        )
    return with_them


def chosen_strategy(settings: RewiringSettings, partitions: int) -> CandidateStrategy:
    """The strategy of the settings, with its options."""
    known = candidates.defaults(settings.candidates)
    options = {"parts": partitions} if "parts" in known else {}
    return candidates[settings.candidates](**options | settings.options_of("candidates", known))


def _standardized(data: Data) -> Data:
    x = data.x.to_dense().double()
    mean, scale = column_statistics(x)
    data = copy.copy(data)
    data.x = ((x - mean) / scale).float()
    return data
