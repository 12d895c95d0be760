"""The candidates that settings ask for."""

from __future__ import annotations

from torch_geometric.data import Data

from gumbel_mpnn.config import RewiringSettings
from gumbel_mpnn.rewiring.candidates.base import candidates
from gumbel_mpnn.rewiring.candidates.cache import Cached


def with_candidates(data: Data, settings: RewiringSettings) -> Data:
    """The data with the candidates of the strategy that `settings` name; those they have already are kept."""
    if settings.candidates == "none" or data.get("candidate_index") is not None:
        return data
    known = candidates.defaults(settings.candidates)
    options = {name: getattr(settings, name) for name in ("per_node", "pairs", "similarity") if name in known}
    with_them: Data = Cached(candidates[settings.candidates](**options))(data)
    return with_them
