"""All tables by name, and the jobs that a request selects from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gumbel_mpnn._util.errors import UserError, unknown_name
from gumbel_mpnn.paper.ablation import Ablation
from gumbel_mpnn.paper.accuracy import Accuracy, AccuracyUnfiltered
from gumbel_mpnn.paper.adaptive import Adaptive
from gumbel_mpnn.paper.audit import AuditTable
from gumbel_mpnn.paper.auto import Auto
from gumbel_mpnn.paper.backbones import Backbones
from gumbel_mpnn.paper.base import Job
from gumbel_mpnn.paper.bottleneck import Bottleneck
from gumbel_mpnn.paper.budget import Budget
from gumbel_mpnn.paper.components import Components
from gumbel_mpnn.paper.consistency import Consistency
from gumbel_mpnn.paper.decomposition import DecompositionTable
from gumbel_mpnn.paper.degree import DegreeGoal
from gumbel_mpnn.paper.flood import Flood
from gumbel_mpnn.paper.long_range import LongRange
from gumbel_mpnn.paper.measures import MeasuresTable
from gumbel_mpnn.paper.missing import Missing, NoGraph
from gumbel_mpnn.paper.mixtures import MixturesTable
from gumbel_mpnn.paper.neighborhoods import Neighborhoods
from gumbel_mpnn.paper.noise import Noise
from gumbel_mpnn.paper.page import Analysis, Experiment
from gumbel_mpnn.paper.poison import Poison
from gumbel_mpnn.paper.readings import Readings, RewiringReadings, TrainingReadings
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.paper.rewiring import Rewiring
from gumbel_mpnn.paper.spectra import Spectra
from gumbel_mpnn.paper.temperature import Temperature

_EXPERIMENTS: tuple[Experiment, ...] = (
    Accuracy(),
    AccuracyUnfiltered(),
    Backbones(),
    Readings(),
    TrainingReadings(),
    RewiringReadings(),
    Rewiring(),
    Auto(),
    AuditTable(),
    Poison(),
    Flood(),
    Missing(),
    NoGraph(),
    Adaptive(),
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
KINDS = ("dataset", "model", "preset", "setting")
"""What jobs are selected by."""
experiments: dict[str, Experiment] = {experiment.name: experiment for experiment in _EXPERIMENTS}
analyses: dict[str, Analysis] = {
    analysis.name: analysis for analysis in (MeasuresTable(), MixturesTable(), Neighborhoods())
}


def requested_experiment(name: str, request: Request) -> Experiment:
    """Return the experiment `name`, on the data set of the request if it has one."""
    experiment = experiments[name]
    return experiment if request.dataset is None else experiment.on(request.dataset)


def requested_jobs(experiment: Experiment, request: Request) -> list[Job]:
    """Return the jobs of an experiment that the request selects.

    Names of one kind (data sets, models, presets, or settings of the data) select among that kind; a kind that is not
    named is not restricted.
    """
    if request.only is None:
        return experiment.quick_plan() if request.quick and request.dataset is None else experiment.plan()
    jobs = experiment.plan()
    known = [{getattr(job, kind) for job in jobs} for kind in KINDS]
    check_known("data set, model, preset or setting in this table", request.only, set().union(*known))
    selected = [names.intersection(request.only) or names for names in known]
    chosen = [
        job for job in jobs if all(getattr(job, kind) in names for kind, names in zip(KINDS, selected, strict=True))
    ]
    if not chosen:
        raise UserError(
            f"{experiment.name} has no row with all of {', '.join(request.only)}: name a data set, model, preset"
            " and setting that stand together in a row"
        )
    return chosen


def check_known(kind: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise an `UnknownNameError` for the first name that is not known."""
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
