"""The choice among rungs, by hand-computed differences and errors."""

import math

import pytest

from gumbel_mpnn.runs.choice import (
    Candidate,
    Choice,
    best_of,
    choose,
    difference,
    read_choices,
    upper_half,
    write_choice,
)
from gumbel_mpnn.settings import Replica

NODES = 100


def values(*by_split, seeds=1):
    """Validation values of the runs of a rung: one for each split, the same for each seed."""
    return {Replica(split, seed): value for split, value in enumerate(by_split) for seed in range(seeds)}


def of_seeds(*by_seed):
    return {Replica(0, seed): value for seed, value in enumerate(by_seed)}


class TestDifference:
    def test_of_splits(self):
        mean, error = difference(values(0.8, 0.7, 0.9), values(0.7, 0.7, 0.7), NODES)
        assert mean == pytest.approx(0.1)  # differences .1, 0, .2: standard deviation .1
        assert error == pytest.approx(0.1 / math.sqrt(3))

    def test_seeds_of_a_split_are_not_independent(self):
        once = difference(values(0.8, 0.7, 0.9), values(0.7, 0.7, 0.7), NODES)
        thrice = difference(values(0.8, 0.7, 0.9, seeds=3), values(0.7, 0.7, 0.7, seeds=3), NODES)
        assert thrice == pytest.approx(once)

    def test_seeds_of_one_split_share_the_error_of_its_nodes(self):
        mean, error = difference(of_seeds(0.8, 0.6), of_seeds(0.5, 0.5), NODES)
        assert mean == pytest.approx(0.2)
        assert error == pytest.approx(math.sqrt(0.1**2 + 0.7 * 0.3 / NODES))

    def test_of_one_run_is_that_of_a_share_of_nodes(self):
        assert difference(values(0.8), values(0.7), NODES) == pytest.approx((0.1, 0.04))

    def test_of_the_runs_that_both_have(self):
        stopped = {Replica(0, 0): 0.5, Replica(1, 0): 0.5}
        mean, error = difference({Replica(k, 0): 0.6 + 0.2 * (k == 1) for k in range(4)}, stopped, math.inf)
        assert (mean, error) == pytest.approx((0.2, 0.1))


class TestChoosing:
    RUNGS, PLAIN = ("mlp", "gcn", "free", "freer"), ("mlp", "gcn")

    def choose(self, **of):
        return choose(of, [name for name in self.RUNGS if name in of], self.PLAIN, NODES)

    def test_the_best_if_it_is_clearly_ahead(self):
        mlp, gcn, free = values(0.5, 0.5, 0.5), values(0.6, 0.6, 0.6), values(0.8, 0.7, 0.8)
        assert self.choose(mlp=mlp, gcn=gcn, free=free) == "free"

    @pytest.mark.parametrize(("last", "chosen"), [(0.75, "gcn"), (0.83, "free")])
    def test_the_best_plain_one_within_half_the_error(self, last, chosen):
        """Differences .1, -.1 and .05 or .13: the means are .017 and .043, and half of the errors .030 and .036."""
        gcn, free = values(0.7, 0.8, 0.7), values(0.8, 0.7, last)
        assert self.choose(mlp=values(0.5, 0.5, 0.5), gcn=gcn, free=free) == chosen

    def test_the_best_of_several_that_rewire_and_of_several_that_do_not(self):
        """A plainer rung is not preferred among rungs of the same kind."""
        mlp, gcn = values(0.79, 0.78, 0.8), values(0.8, 0.8, 0.79)
        assert self.choose(mlp=mlp, gcn=gcn, free=values(0.8, 0.8, 0.79)) == "gcn"
        free, freer = values(0.88, 0.9, 0.89), values(0.9, 0.88, 0.9)
        assert self.choose(mlp=mlp, gcn=gcn, free=free, freer=freer) == "freer"

    def test_the_best_if_no_plain_one_is_left(self):
        assert self.choose(free=values(0.5, 0.6, 0.5), freer=values(0.5, 0.6, 0.6)) == "freer"

    def test_the_plainer_of_equals(self):
        of = dict.fromkeys(self.RUNGS, values(0.5, 0.6, 0.7))
        assert best_of(of, self.RUNGS) == self.choose(**of) == "mlp"

    def test_the_upper_half_and_the_best_plain_rung_go_on_in_their_order(self):
        of = {name: values(value) for name, value in zip("abcdef", (0.1, 0.3, 0.9, 0.4, 0.8, 0.7), strict=True)}
        assert upper_half(of, "abcdef", plain=["a", "b"]) == ["b", "c", "e", "f"]
        assert upper_half(of, "cde", plain=[]) == ["c", "e"]


def choice(chosen, gain, error, vals, runs=("split0-seed0", "split1-seed0", "split2-seed0")):
    ranked = sorted(vals, key=lambda name: -vals[name])
    rungs = [
        Candidate(name, "", name in ("mlp", "gcn"), val, vals[ranked[0]] - val, 0.02, len(runs), 1 + ranked.index(name))
        for name, val in vals.items()
    ]
    return Choice(chosen, "gcn", gain, error, tuple(rungs), "gumbel-mpnn", runs)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            choice("gcn", 0.0, 0.0, {"gcn": 0.8, "free": 0.7}),
            "no rewiring needed: gcn has the best validation value",
        ),
        (
            choice("mlp", -0.003, 0.02, {"mlp": 0.797, "gcn": 0.8, "free": 0.805}),
            "no rewiring needed: mlp is behind the best rung, free, by 0.8 ± 2.0 points on validation, which may be"
            " chance",
        ),
        (
            choice("free", 0.1, 0.01, {"gcn": 0.7, "free": 0.8}),
            "free is surely better than the best plain model, gcn: +10.0 ± 1.0 points on validation",
        ),
        (
            choice("free", 0.1, 0.01, {"gcn": 0.7, "free": 0.8}, runs=("split0-seed0",)),
            "free is probably better than the best plain model, gcn: +10.0 ± 1.0 points on validation",
        ),
        (
            choice("free", None, None, {"free": 0.8}),
            "free was chosen; training of all plain models diverged",
        ),
        (
            choice("free", 0.03, 0.02, {"gcn": 0.77, "free": 0.8}),
            "free is probably better than the best plain model, gcn: +3.0 ± 2.0 points on validation",
        ),
    ],
)
def test_sentences(made, sentence):
    assert made.sentence() == sentence


def test_auto_comes_before_its_controls_that_chose_the_same_runs(tmp_path):
    rung = Candidate("mlp", "", True, 0.8, 0.0, 0.1, 1, 1)
    for learned in ("frozen", "gumbel-mpnn", "random"):
        write_choice(tmp_path, Choice("mlp", "mlp", 0.0, 0.1, (rung,), learned, ("split0-seed0",)))
    write_choice(tmp_path, Choice("mlp", "mlp", 0.0, 0.1, (rung,), "random", ("split0-seed0", "split1-seed0")))
    found = [(choice.learned, len(choice.runs)) for choice in read_choices(tmp_path)]
    assert found[:2] == [("random", 2), ("gumbel-mpnn", 1)]
