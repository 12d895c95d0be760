"""One module for each table or figure."""

from gumbel_mpnn.experiments.backbones import Backbones
from gumbel_mpnn.experiments.base import Experiment, Job, published, run_jobs
from gumbel_mpnn.experiments.bottleneck import Bottleneck
from gumbel_mpnn.experiments.demo import run_demo
from gumbel_mpnn.experiments.long_range import LongRange
from gumbel_mpnn.experiments.noise import Noise
from gumbel_mpnn.experiments.rewiring import Rewiring

_ALL: tuple[Experiment, ...] = (Backbones(), Rewiring(), Noise(), LongRange(), Bottleneck())
experiments: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}

__all__ = [
    "Backbones",
    "Bottleneck",
    "Experiment",
    "Job",
    "LongRange",
    "Noise",
    "Rewiring",
    "experiments",
    "published",
    "run_demo",
    "run_jobs",
]
