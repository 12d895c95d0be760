import pytest

from gumbel_mpnn._util.errors import (
    DataError,
    MissingDataError,
    UnknownNameError,
    UserError,
    did_you_mean,
    unknown_name,
)


@pytest.mark.parametrize(
    ("name", "known", "answer"),
    [
        ("gnc", ["gcn", "mlp"], "did you mean 'gcn'?"),
        ("sag", ["sage", "saga", "mlp"], "did you mean 'sage' or 'saga'?"),
        ("transformer", ["mlp", "gcn"], "known are gcn, mlp"),
        ("gcn", [], "none is known"),
    ],
)
def test_did_you_mean_names_the_nearest_or_all(name, known, answer):
    assert did_you_mean(name, known) == answer


def test_did_you_mean_takes_a_generator():
    assert did_you_mean("gnc", (name for name in ("mlp", "gcn"))) == "did you mean 'gcn'?"


def test_unknown_name_is_one_whole_sentence():
    error = unknown_name("model", "gnc", ["gcn", "mlp"])
    assert isinstance(error, UnknownNameError)
    assert str(error) == "there is no model called 'gnc': did you mean 'gcn'?"


@pytest.mark.parametrize("kind", [UnknownNameError, DataError, MissingDataError])
def test_everything_a_person_causes_is_a_user_error(kind):
    assert issubclass(kind, UserError)
    assert issubclass(UserError, ValueError)


def test_missing_data_is_a_data_error():
    assert issubclass(MissingDataError, DataError)
