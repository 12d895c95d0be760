"""Studies of our own: defenses, damaged graphs, and how the settings of the tables were found."""

from experiments.experiment import Page
from experiments.studies.adaptive import Adaptive
from experiments.studies.audit import Audit
from experiments.studies.auto import Auto
from experiments.studies.budget import Budget
from experiments.studies.flood import Flood
from experiments.studies.missing import Missing, NoGraph
from experiments.studies.poison import Poison
from experiments.studies.readings import Readings, RewiringReadings, TrainingReadings
from experiments.studies.rewiring import Rewiring
from experiments.studies.spectra import Spectra

PAGES: tuple[Page, ...] = (
    Rewiring(),
    Auto(),
    Audit(),
    Poison(),
    Flood(),
    Missing(),
    NoGraph(),
    Adaptive(),
    Readings(),
    TrainingReadings(),
    RewiringReadings(),
    Budget(),
    Spectra(),
)
"""Our own tables."""
