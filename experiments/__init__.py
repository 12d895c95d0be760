"""Tables and figures of the paper, and studies of our own: `python -m experiments NAME`, or `make reproduce NAME=…`."""

import os

from experiments import defenses as defenses
from experiments import paper, studies
from experiments.experiment import Analysis, Experiment, Job, Page
from experiments.published import published

__all__ = ["PAGES", "Analysis", "Experiment", "Job", "Page", "published"]

# Models and data sets of the experiments are registered when they are imported, by worker processes too.
os.environ["GUMBEL_MPNN_PLUGINS"] = ",".join(filter(None, (os.environ.get("GUMBEL_MPNN_PLUGINS"), "experiments")))

PAGES: dict[str, Page] = {page.name: page for page in (*paper.PAGES, *studies.PAGES)}
"""All tables by name."""
