"""One module for each table or figure."""

from gumbel_mpnn.experiments.backbones import Backbones
from gumbel_mpnn.experiments.base import Experiment, Job, published, run_jobs
from gumbel_mpnn.experiments.demo import run_demo

experiments: dict[str, Experiment] = {experiment.name: experiment for experiment in (Backbones(),)}

__all__ = ["Backbones", "Experiment", "Job", "experiments", "published", "run_demo", "run_jobs"]
