"""One module for each table or figure."""

from gumbel_mpnn.paper.ablation import Ablation
from gumbel_mpnn.paper.accuracy import Accuracy, AccuracyUnfiltered
from gumbel_mpnn.paper.backbones import Backbones
from gumbel_mpnn.paper.base import Job, published, run_jobs
from gumbel_mpnn.paper.bottleneck import Bottleneck
from gumbel_mpnn.paper.budget import Budget
from gumbel_mpnn.paper.components import Components
from gumbel_mpnn.paper.consistency import Consistency
from gumbel_mpnn.paper.decomposition import DecompositionTable
from gumbel_mpnn.paper.degree import DegreeGoal
from gumbel_mpnn.paper.demo import run_demo
from gumbel_mpnn.paper.long_range import LongRange
from gumbel_mpnn.paper.measures import MeasuresTable
from gumbel_mpnn.paper.mixtures import MixturesTable
from gumbel_mpnn.paper.noise import Noise
from gumbel_mpnn.paper.page import Analysis, Experiment, Page
from gumbel_mpnn.paper.paper_numbers import PaperNumber
from gumbel_mpnn.paper.rewiring import Rewiring
from gumbel_mpnn.paper.spectra import Spectra
from gumbel_mpnn.paper.summary import Collected, SummaryTable
from gumbel_mpnn.paper.temperature import Temperature
from gumbel_mpnn.paper.views import Chart, Grid

_ALL: tuple[Experiment, ...] = (
    Accuracy(),
    AccuracyUnfiltered(),
    Backbones(),
    Rewiring(),
    Noise(),
    LongRange(),
    Bottleneck(),
    Components(),
    Temperature(),
    Ablation(),
    DegreeGoal(),
    Consistency(),
    Spectra(),
    DecompositionTable(),
    Budget(),
)
experiments: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
analyses: dict[str, Analysis] = {analysis.name: analysis for analysis in (MeasuresTable(), MixturesTable())}

__all__ = [
    "Ablation",
    "Accuracy",
    "AccuracyUnfiltered",
    "Analysis",
    "Backbones",
    "Bottleneck",
    "Budget",
    "Chart",
    "Collected",
    "Components",
    "Consistency",
    "DecompositionTable",
    "DegreeGoal",
    "Experiment",
    "Grid",
    "Job",
    "LongRange",
    "MeasuresTable",
    "MixturesTable",
    "Noise",
    "Page",
    "PaperNumber",
    "Rewiring",
    "Spectra",
    "SummaryTable",
    "Temperature",
    "analyses",
    "experiments",
    "published",
    "run_demo",
    "run_jobs",
]
