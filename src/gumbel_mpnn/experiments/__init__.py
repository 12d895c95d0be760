"""One module for each table or figure."""

from gumbel_mpnn.experiments.backbones import Backbones
from gumbel_mpnn.experiments.base import Analysis, Experiment, Job, published, run_jobs
from gumbel_mpnn.experiments.decomposition import DecompositionTable
from gumbel_mpnn.experiments.demo import run_demo
from gumbel_mpnn.experiments.measures import MeasuresTable
from gumbel_mpnn.experiments.mixtures import MixturesTable

experiments: dict[str, Experiment] = {experiment.name: experiment for experiment in (Backbones(), DecompositionTable())}
analyses: dict[str, Analysis] = {analysis.name: analysis for analysis in (MeasuresTable(), MixturesTable())}

__all__ = [
    "Analysis",
    "Backbones",
    "DecompositionTable",
    "Experiment",
    "Job",
    "MeasuresTable",
    "MixturesTable",
    "analyses",
    "experiments",
    "published",
    "run_demo",
    "run_jobs",
]
