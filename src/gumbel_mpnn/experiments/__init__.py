"""One module for each table or figure."""

from gumbel_mpnn.experiments.backbones import Backbones
from gumbel_mpnn.experiments.base import GENERATED, Analysis, Experiment, Job, published, run_jobs
from gumbel_mpnn.experiments.bottleneck import Bottleneck
from gumbel_mpnn.experiments.decomposition import DecompositionTable
from gumbel_mpnn.experiments.demo import run_demo
from gumbel_mpnn.experiments.long_range import LongRange
from gumbel_mpnn.experiments.measures import MeasuresTable
from gumbel_mpnn.experiments.mixtures import MixturesTable
from gumbel_mpnn.experiments.noise import Noise
from gumbel_mpnn.experiments.rewiring import Rewiring

_ALL: tuple[Experiment, ...] = (Backbones(), Rewiring(), Noise(), LongRange(), Bottleneck(), DecompositionTable())
experiments: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
analyses: dict[str, Analysis] = {analysis.name: analysis for analysis in (MeasuresTable(), MixturesTable())}

__all__ = [
    "GENERATED",
    "Analysis",
    "Backbones",
    "Bottleneck",
    "DecompositionTable",
    "Experiment",
    "Job",
    "LongRange",
    "MeasuresTable",
    "MixturesTable",
    "Noise",
    "Rewiring",
    "analyses",
    "experiments",
    "published",
    "run_demo",
    "run_jobs",
]
