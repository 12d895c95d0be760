"""Two settings compared run by run."""

from dataclasses import replace

import numpy as np
import pytest

from gumbel_mpnn.errors import UserError
from gumbel_mpnn.runs import Paired, Record, compare
from gumbel_mpnn.runs.paired import _resampled_means

BLANK = Record("", "", {}, 0, 0, "accuracy", 0.0, 0.0, 1, 1, 0.0, {})


def records(values):
    return [replace(BLANK, split=split, seed=seed, test=test) for (split, seed), test in values.items()]


def test_the_mean_is_that_of_the_runs_both_have():
    ours = records({(0, 0): 0.9, (0, 1): 0.8, (1, 0): 0.7})
    theirs = records({(0, 0): 0.8, (1, 0): 0.5, (2, 0): 0.1})
    paired = compare(ours, theirs)
    assert paired.mean == pytest.approx(0.15)
    assert paired.n == 2


def test_the_interval_holds_the_mean_and_lies_within_the_values():
    ours = records({(split, 0): 0.5 + 0.1 * split for split in range(4)})
    paired = compare(ours, records({(split, 0): 0.5 for split in range(4)}))
    assert paired.mean == pytest.approx(0.15)
    assert 0.0 < paired.low < paired.mean < paired.high < 0.3


def test_two_splits_are_too_few_for_a_verdict():
    paired = compare(records({(0, 0): 0.9, (1, 0): 0.9}), records({(0, 0): 0.1, (1, 0): 0.1}))
    assert (paired.low, paired.high, paired.verdict) == (-1.0, 1.0, "same")


def test_no_run_in_common_is_an_error():
    with pytest.raises(UserError, match="in common"):
        compare(records({(0, 0): 0.5}), records({(1, 0): 0.5}))


@pytest.mark.parametrize(("low", "high", "verdict"), [(0.1, 0.2, "better"), (-0.2, -0.1, "worse"), (-0.1, 0.1, "same")])
def test_a_verdict_is_given_only_where_the_interval_leaves_out_zero(low, high, verdict):
    assert Paired(0.0, low, high, 3).verdict == verdict


def test_runs_of_one_split_do_not_count_as_independent():
    """Ten splits that differ, each with three equal seeds: the interval is that of ten values, not of thirty."""
    values = np.random.default_rng(0).normal(size=10)
    spread = _resampled_means([np.repeat(value, 3) for value in values]).std()
    assert spread == pytest.approx(values.std() / np.sqrt(10), rel=0.05)


def test_seeds_within_a_split_are_drawn_anew_too():
    assert _resampled_means([np.array([0.0, 1.0])]).std() == pytest.approx(np.sqrt(1 / 8), rel=0.05)
