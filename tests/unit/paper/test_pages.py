"""What every experiment and analysis is made of."""

import inspect

import pytest

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.paper import Analysis, Experiment, analyses, experiments, mixtures, noise, spectra
from gumbel_mpnn.paper.structure import SAMPLE

PAGES = [*experiments.values(), *analyses.values()]
OF_ITS_OWN = {"dataset", "datasets"}


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_in_it_is_misspelled(page):
    """A member that nobody asks for, like `number()` or `chart`, would be passed over in silence."""
    kind = Experiment if isinstance(page, Experiment) else Analysis
    known = public(kind) | {name for base in kind.__mro__ for name in inspect.get_annotations(base)}
    assert public(page) <= known | OF_ITS_OWN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_columns_in_per_cent_are_shares_in_json(page):
    """The heading of such a column has a % in it; an interval is in the unit of its difference."""
    shown = {name for name, heading in page.headings.items() if "%" in heading and not heading.startswith("95 %")}
    assert shown <= set(page.percent)
    intervals = {name for name, heading in page.headings.items() if heading.startswith("95 %")}
    assert intervals <= set(page.percent)
    row = {"dataset": "cora", **dict.fromkeys(page.percent, 29.0), "n": 3, "p": 0.5}
    expected = {**row, **dict.fromkeys(page.percent, 0.29), **({"unit": "share"} if page.percent else {})}
    assert page.shares(row) == expected


@pytest.mark.parametrize("name", [name for name, one in experiments.items() if type(one).on is Experiment.on])
def test_most_have_data_sets_of_their_own(name):
    with pytest.raises(UserError, match=f"the data sets of {name} are fixed: select some of them with `only`"):
        experiments[name].on("cora")


def test_what_is_not_said_is_nothing():
    class Plain(Experiment):
        name, title, headings = "plain", "Plain", {}

        def plan(self):
            return []

        def collect(self, results):
            return []

    plain = Plain()
    assert (plain.numbers(), plain.remarks({}, []), plain.charts, plain.grid) == ([], "", (), None)
    assert (plain.digits, plain.from_models) == (2, "")


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("noise", noise.COUNTS),
        ("consistency", ("of-runs", SAMPLE, f"{mixtures.PAPERS:.0e}")),
        ("spectra", ("of-runs", SAMPLE, spectra.PAIRS)),
    ],
)
def test_what_is_kept_of_models_is_named_after_the_constants_that_decide_it(name, constants):
    """The fault: once they had changed, what was kept before was taken for what they give now."""
    assert experiments[name].from_models == "-".join(map(str, (name, *constants)))


def test_what_is_kept_of_models_has_a_name_of_its_own():
    """Experiments share runs: of two with one name, one would read what the other has kept."""
    names = [experiment.from_models for experiment in experiments.values() if experiment.from_models]
    assert len(set(names)) == len(names) > 1


@pytest.mark.parametrize("experiment", experiments.values(), ids=list(experiments))
def test_what_is_taken_from_models_has_a_name_and_a_method(experiment):
    """`take` is called in every process, for each job by itself; a table without either would store nothing."""
    assert bool(experiment.from_models) == (type(experiment).measure is not Experiment.measure)
