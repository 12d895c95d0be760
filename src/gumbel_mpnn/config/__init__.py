"""Settings of a run, settings files, and registries of components."""

from gumbel_mpnn.config.registry import Registry
from gumbel_mpnn.config.replica import Replica
from gumbel_mpnn.config.settings import (
    DataSettings,
    RewiringSettings,
    Settings,
    TrainSettings,
    constant_temperature,
    resolve,
    rewiring_settings,
    without_patience,
)

__all__ = [
    "DataSettings",
    "Registry",
    "Replica",
    "RewiringSettings",
    "Settings",
    "TrainSettings",
    "constant_temperature",
    "resolve",
    "rewiring_settings",
    "without_patience",
]
