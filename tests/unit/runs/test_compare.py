"""Two settings compared run by run."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from gumbel_mpnn.runs.compare import Paired, _resampled_means, compare, corrected, mean_interval, signed_rank_p
from gumbel_mpnn.runs.store import Record
from gumbel_mpnn.util.errors import UserError

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


GAINS = (0.03, 0.01, 0.04, -0.005, 0.02, 0.05, 0.015, 0.025, 0.035, 0.045)


def gaining(gains, splits=None):
    """Runs with these gains over runs of 0.5: one seed of each split, or seeds of `splits` splits."""
    places = [(k, 0) if splits is None else (k % splits, k // splits) for k in range(len(gains))]
    values = dict(zip(places, gains, strict=True))
    return compare(records({place: 0.5 + gain for place, gain in values.items()}), records(dict.fromkeys(values, 0.5)))


def test_seeds_of_one_split_are_tested_as_splits_are():
    over_splits, over_seeds = gaining(GAINS), gaining(GAINS, splits=1)
    assert replace(over_seeds, over="splits") == over_splits
    assert (over_seeds.over, over_seeds.units, over_seeds.n) == ("seeds", 10, 10)
    assert over_seeds.p == pytest.approx(4 / 1024)  # the only loss is the smallest of the differences
    assert (over_splits.verdict, over_seeds.verdict) == ("better", "better (one split)")
    assert over_seeds.outcome == "better"
    assert gaining([-gain for gain in GAINS], splits=1).verdict == "worse (one split)"
    assert gaining([0.01, -0.01] * 5, splits=1).verdict == "same (one split)"


@pytest.mark.parametrize(("gains", "splits"), [(GAINS[:5], 1), (GAINS[:2], None), ((0.1,) * 20, 2)])
def test_few_splits_and_few_seeds_of_one_have_no_verdict_and_no_interval(gains, splits):
    few = gaining(gains, splits)
    assert (few.low, few.high, few.over, few.n) == (None, None, "splits", len(gains))
    assert few.verdict == "too few splits"


def test_only_pairs_that_both_have_count_as_seeds():
    """Two splits on one side, one on the other: what both have is one split."""
    ours = records({(split, seed): 0.6 for split in (0, 1) for seed in range(8)})
    paired = compare(ours, records({(0, seed): 0.5 for seed in range(7)}))
    assert (paired.over, paired.units, paired.n, paired.verdict) == ("seeds", 7, 7, "better (one split)")


def test_the_interval_of_a_mean():
    runs = records({(split, 0): 0.5 + 0.1 * split for split in range(6)})
    (low, high), over = mean_interval(runs)
    assert 0.5 < low < 0.75 < high < 1.0
    assert over == "splits"
    assert mean_interval([*runs, replace(BLANK, split=6, test=None)]) == ((low, high), "splits")
    assert mean_interval(runs[:2]) == (None, "splits")
    of_seeds = [replace(run, split=3, seed=run.split) for run in runs]
    assert mean_interval(of_seeds) == ((low, high), "seeds")
    assert mean_interval(of_seeds[:5]) == (None, "splits")


def test_no_run_in_common_is_an_error():
    with pytest.raises(UserError, match="in common"):
        compare(records({(0, 0): 0.5}), records({(1, 0): 0.5}))


@pytest.mark.parametrize(
    ("low", "high", "p", "verdict"),
    [
        (0.1, 0.2, 0.01, "better"),
        (-0.2, -0.1, 0.01, "worse"),
        (-0.1, 0.1, 0.01, "same"),
        (0.1, 0.2, 0.05, "same"),
        (-0.2, -0.1, 0.05, "same"),
    ],
)
def test_a_verdict_needs_an_interval_without_zero_and_the_test(low, high, p, verdict):
    assert Paired(0.0, low, high, 10, 10, p=p).verdict == verdict


@pytest.mark.parametrize(
    ("splits", "p", "verdict"), [(5, 2 / 32, "too few splits"), (6, 2 / 64, "better"), (10, 2 / 1024, "better")]
)
def test_every_split_better(splits, p, verdict):
    """Of the 2^n signs, only those of the sample and their opposite are as far out."""
    ours = records({(split, seed): 0.6 + 0.01 * split for split in range(splits) for seed in range(2)})
    paired = compare(ours, records({(split, seed): 0.5 for split in range(splits) for seed in range(2)}))
    assert paired.p == pytest.approx(p)
    assert paired.n == 2 * splits
    assert paired.verdict == verdict


def test_the_test_is_of_split_means():
    """Seeds that go apart within a split are one difference: 3, -1 and 2, -2 of two splits."""
    ours = records({(0, 0): 0.8, (0, 1): 0.4, (1, 0): 0.7, (1, 1): 0.3})
    theirs = records({(split, seed): 0.5 for split in (0, 1) for seed in (0, 1)})
    assert compare(ours, theirs).p == signed_rank_p([0.1, 0.0]) == 1.0


def enumerated(differences):
    """The p-value by its definition: over all signs of the ranked differences."""
    values = np.array([value for value in differences if value])
    ranks = rankdata(np.abs(values))
    sums = np.array([ranks[list(signs)].sum() for signs in itertools.product([False, True], repeat=len(values))])
    middle, found = ranks.sum() / 2, ranks[values > 0].sum()
    return float((np.abs(sums - middle) >= abs(found - middle) - 1e-9).mean())


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=8).filter(any))
@settings(max_examples=30, deadline=None)
def test_the_p_value_against_its_definition_with_ties_and_zeros(differences):
    assert signed_rank_p(differences) == pytest.approx(enumerated(differences))


def test_rounding_does_not_break_ties():
    assert signed_rank_p([0.1, -(0.3 - 0.2), 0.7 - 0.6]) == pytest.approx(signed_rank_p([1, -1, 1]))
    assert signed_rank_p([0.0, 0.0]) == 1.0


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [
        ([], []),
        ([0.04], [0.04]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.04, 0.001, 0.5, 0.6], [0.12, 0.004, 1.0, 1.0]),
        ([0.02, 0.02], [0.04, 0.04]),
    ],
)
def test_holm_by_hand(p_values, expected):
    found = corrected({key: Paired(0.1, 0.05, 0.2, 10, 10, p=p) for key, p in enumerate(p_values)})
    assert [paired.p for paired in found.values()] == pytest.approx(expected)
    assert [paired.verdict for paired in found.values()] == ["better" if p < 0.05 else "same" for p in expected]


def test_the_correction_counts_all_comparisons_whatever_they_are_over():
    """Nine tests over seeds or splits, and one with too few splits: the smallest p is multiplied by ten."""
    seeds, splits, few = gaining((0.1,) * 10, splits=1), gaining((0.1,) * 10), gaining((0.1,) * 2)
    comparisons = {**{f"seeds{k}": seeds for k in range(4)}, **{f"splits{k}": splits for k in range(5)}, "few": few}
    found = corrected(comparisons)
    assert found["seeds0"].p == found["splits0"].p == pytest.approx(10 * 2 / 1024)
    assert {key: paired.over for key, paired in found.items()} == {key: each.over for key, each in comparisons.items()}
    assert (found["seeds3"].verdict, found["splits4"].verdict) == ("better (one split)", "better")
    assert found["few"].verdict == "too few splits"


def test_runs_of_one_split_do_not_count_as_independent():
    """Ten splits that differ, each with three equal seeds: the interval is that of ten values, not of thirty."""
    values = np.random.default_rng(0).normal(size=10)
    spread = _resampled_means([np.repeat(value, 3) for value in values]).std()
    assert spread == pytest.approx(values.std() / np.sqrt(10), rel=0.05)


def test_seeds_within_a_split_are_drawn_anew_too():
    assert _resampled_means([np.array([0.0, 1.0])]).std() == pytest.approx(np.sqrt(1 / 8), rel=0.05)
