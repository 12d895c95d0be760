"""Records and summaries, by hand."""

import json
import math

import pytest
import torch

from gumbel_mpnn import __version__
from gumbel_mpnn.runs.record import Record, Summary
from gumbel_mpnn.runs.store import describe_machine, record_of
from gumbel_mpnn.training import train
from helpers import make_settings, make_task, replicas


class TestSummary:
    def test_two_values(self):
        summary = Summary.of([0.5, 0.7])
        assert summary.mean == pytest.approx(0.6)
        assert summary.std == pytest.approx(math.sqrt(0.02))
        assert summary.stderr == pytest.approx(0.1)
        assert summary.n == 2

    def test_three_values_from_a_generator(self):
        summary = Summary.of(value / 10 for value in (1, 2, 3))
        assert (summary.mean, summary.std, summary.n) == (pytest.approx(0.2), pytest.approx(0.1), 3)
        assert summary.stderr == pytest.approx(0.1 / math.sqrt(3))

    def test_a_single_value_has_no_spread(self):
        assert Summary.of([0.25]) == Summary(mean=0.25, std=0.0, stderr=0.0, n=1)

    def test_equal_values_have_exactly_no_spread(self):
        assert Summary.of([0.1] * 10).std == pytest.approx(0.0, abs=1e-16)

    def test_what_is_missing_is_left_out(self):
        assert Summary.of([None, 0.25, math.nan]) == Summary.of([0.25])

    def test_no_values_have_no_mean(self):
        summary = Summary.of([None, None])
        assert (summary.n, str(summary)) == (0, "–")
        assert math.isnan(summary.mean)
        assert summary.to_dict() == {"mean": None, "std": None, "stderr": None}

    def test_people_read_per_cent(self):
        assert str(Summary.of([0.5, 0.7])) == "60.00 ± 14.14 (std of 2)"


@pytest.fixture(scope="module")
def outcome():
    return train(make_task(), make_settings(epochs=3), replicas((1, 4)))[0]


def test_a_record_says_what_the_outcome_was(outcome):
    settings = make_settings(epochs=3)
    record = record_of(outcome, settings, "abc", "accuracy", torch.device("cpu"))
    assert record.fingerprint == settings.fingerprint("abc")
    assert (record.data_hash, record.metric) == ("abc", "accuracy")
    assert (record.split, record.seed) == (1, 4)
    assert (record.val, record.test) == (outcome.val, outcome.test)
    assert (record.best_epoch, record.epochs, record.seconds) == (outcome.best_epoch, 3, outcome.seconds)
    assert record.settings == settings.to_dict()


def test_a_record_survives_json(outcome):
    record = record_of(outcome, make_settings(epochs=3), "abc", "accuracy", torch.device("cpu"))
    assert Record(**json.loads(json.dumps(record.to_dict()))) == record


def test_the_machine_is_named_with_its_versions():
    machine = describe_machine(torch.device("cpu"))
    assert machine["device"].startswith("cpu (")
    assert (machine["torch"], machine["gumbel_mpnn"]) == (torch.__version__, __version__)
    assert all(isinstance(value, str) for value in machine.values())
