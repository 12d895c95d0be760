"""Messages to users are one sentence with the nearest names, and numbers with their nouns."""

import pytest

from gumbel_mpnn.util.errors import counted, did_you_mean


@pytest.mark.parametrize(
    ("name", "known", "answer"),
    [
        ("gnc", ["gcn", "mlp"], "did you mean 'gcn'?"),
        ("sag", ["sage", "saga", "mlp"], "did you mean 'sage' or 'saga'?"),
        ("transformer", (name for name in ("mlp", "gcn")), "known are gcn, mlp"),
        ("gcn", [], "none is known"),
    ],
)
def test_did_you_mean_names_the_nearest_or_all(name, known, answer):
    assert did_you_mean(name, known) == answer


def test_counted():
    assert [counted(number, "run") for number in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
