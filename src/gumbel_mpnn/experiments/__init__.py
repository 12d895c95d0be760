"""One module for each table or figure."""

from gumbel_mpnn.experiments.ablation import Ablation
from gumbel_mpnn.experiments.accuracy import Accuracy, AccuracyUnfiltered
from gumbel_mpnn.experiments.backbones import Backbones
from gumbel_mpnn.experiments.base import Job, published, run_jobs
from gumbel_mpnn.experiments.bottleneck import Bottleneck
from gumbel_mpnn.experiments.budget import Budget
from gumbel_mpnn.experiments.components import Components
from gumbel_mpnn.experiments.consistency import Consistency
from gumbel_mpnn.experiments.decomposition import DecompositionTable
from gumbel_mpnn.experiments.degree import DegreeGoal
from gumbel_mpnn.experiments.demo import run_demo
from gumbel_mpnn.experiments.generated import GENERATED
from gumbel_mpnn.experiments.long_range import LongRange
from gumbel_mpnn.experiments.measures import MeasuresTable
from gumbel_mpnn.experiments.mixtures import MixturesTable
from gumbel_mpnn.experiments.noise import Noise
from gumbel_mpnn.experiments.page import Analysis, Experiment, Page
from gumbel_mpnn.experiments.paper_numbers import PaperNumber
from gumbel_mpnn.experiments.rewiring import Rewiring
from gumbel_mpnn.experiments.spectra import Spectra
from gumbel_mpnn.experiments.summary import Collected, SummaryTable
from gumbel_mpnn.experiments.temperature import Temperature
from gumbel_mpnn.experiments.views import Chart, Grid

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
    "GENERATED",
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
