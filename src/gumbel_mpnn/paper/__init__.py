"""Reproduction of the paper: its tables and figures, its published numbers, and `reproduce`."""

from gumbel_mpnn.paper.base import Job, published
from gumbel_mpnn.paper.page import Analysis, Experiment, Page
from gumbel_mpnn.paper.reproduction import reproduce
from gumbel_mpnn.paper.request import Request
from gumbel_mpnn.paper.result import Reproduction
from gumbel_mpnn.paper.tables import analyses, experiments
from gumbel_mpnn.paper.work import run_jobs

__all__ = [
    "Analysis",
    "Experiment",
    "Job",
    "Page",
    "Reproduction",
    "Request",
    "analyses",
    "experiments",
    "published",
    "reproduce",
    "run_jobs",
]
