"""Settings of a run, settings files, and registries of components."""

from gumbel_mpnn.settings.presets import read_rungs
from gumbel_mpnn.settings.registry import Registry
from gumbel_mpnn.settings.settings import (
    DataSettings,
    Replica,
    RewiringSettings,
    Settings,
    TrainSettings,
    resolve,
    rewiring_settings,
    with_what_follows,
)

__all__ = [
    "DataSettings",
    "Registry",
    "Replica",
    "RewiringSettings",
    "Settings",
    "TrainSettings",
    "read_rungs",
    "resolve",
    "rewiring_settings",
    "with_what_follows",
]
