"""Whose candidates a run has where the data bring some: what its settings say is what it trains with."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gumbel_mpnn.candidates.chosen import DATA
from gumbel_mpnn.config import Settings
from gumbel_mpnn.config.files import is_settings_file, merge, parse_overrides, read_settings_file
from gumbel_mpnn.graph import without_candidates

OF_A_SEARCH = frozenset({"candidates", "per_node", "pairs", "similarity"})
"""Rewiring settings of a person who wants candidates to be searched for, or none at all."""


def asks_for_candidates(
    preset: str | Path | None, settings: Mapping[str, Mapping[str, Any]] | None, overrides: Iterable[str]
) -> bool:
    """Whether a person, by a settings file or what is laid over it, has said which candidates there are."""
    own_file = is_settings_file(preset)
    tables = merge(read_settings_file(Path(preset or "")) if own_file else None, settings, parse_overrides(overrides))
    return not OF_A_SEARCH.isdisjoint(tables.get("rewiring", {}))


def settle_candidates(data: Data, settings: Settings, asked: bool) -> tuple[Data, Settings]:
    """Data and settings that say the same of candidates.

    Those that the data bring take the place of a preset's and of the default's, and the settings then say so. Where a
    person has `asked` for others, or for none, they are taken out: the runs are those of the data without them.
    """
    rewiring = settings.rewiring
    if rewiring is None or data.get("candidate_index") is None:
        return data, settings
    if not asked:
        return data, dataclasses.replace(settings, rewiring=dataclasses.replace(rewiring, candidates=DATA))
    return data if rewiring.candidates == DATA else without_candidates(data), settings
