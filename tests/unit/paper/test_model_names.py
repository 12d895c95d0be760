"""Models are called by their names where people read, and by their ids where programs do."""

import pytest

from gumbel_mpnn.config.registry import normal_name
from gumbel_mpnn.paper import Job, Reproduction, experiments
from gumbel_mpnn.paper.accuracy import Accuracy
from gumbel_mpnn.report.grid import grid_table
from gumbel_mpnn.report.style import MODEL_NAMES
from gumbel_mpnn.runs.choice import LADDERS
from gumbel_mpnn.training import models
from latex import read_table

ROWS = Accuracy().collect({Job("cora", model): None for model in ("gumbel-mpnn", "sage")})


def test_every_model_of_the_experiments_has_a_name():
    used = {job.model for experiment in experiments.values() for job in experiment.plan()}
    assert used == set(MODEL_NAMES)
    ladders = {normal_name(name) for name in MODEL_NAMES.values()} & set(LADDERS)
    single = {models.canonical(name) for name in MODEL_NAMES.values() if normal_name(name) not in LADDERS}
    assert single | ladders == used  # the command takes either


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_names_for_people(form):
    shown = Reproduction(Accuracy(), ROWS).table().render(form)
    assert "Gumbel-MPNN" in shown
    assert "GraphSAGE" in shown
    assert "gumbel-mpnn" not in shown


@pytest.mark.parametrize("form", ["csv", "json"])
def test_ids_for_programs(form):
    shown = Reproduction(Accuracy(), ROWS).table().render(form)
    assert "gumbel-mpnn" in shown
    assert "Gumbel-MPNN" not in shown


def test_the_columns_of_a_grid():
    table = grid_table(Accuracy().grid, ROWS, Accuracy().all_headings())
    assert table.render("markdown").splitlines()[0] == "| data set | preset | Gumbel-MPNN | GraphSAGE |"


@pytest.mark.parametrize("experiment", experiments.values(), ids=experiments)
def test_every_table_is_one_in_latex(experiment):
    rows = experiment.collect(dict.fromkeys(experiment.plan()))
    if rows:
        heads, *cells = read_table(Reproduction(experiment, rows).table().render("latex"))
        assert len(heads) == len(rows[0])
        assert len(cells) == len(rows)
