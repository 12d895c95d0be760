"""Random search: every setting once, judged on validation, nothing done twice."""

import pytest

from gumbel_mpnn._util.errors import UserError
from gumbel_mpnn.runs import Place, RunSpec
from gumbel_mpnn.runs.tuning import choices, draws, search
from helpers import changed, small_data

SPACE = {
    "model": {"hidden_channels": [4, 8], "norm": "none"},
    "train": {"lr": [0.001, 0.01, 0.1], "epochs": 3},
}
SPEC = RunSpec.of(small_data(), "mlp", splits=[0])
HERE = Place(device="cpu")


def test_what_a_space_leaves_open():
    assert choices(SPACE) == {"model.hidden_channels": [4, 8], "train.lr": [0.001, 0.01, 0.1]}


def test_every_setting_is_drawn_once_in_an_order_of_the_seed():
    drawn = [tuple(chosen.values()) for chosen, _ in draws(SPACE, seed=0)]
    assert sorted(drawn) == [(h, lr) for h in (4, 8) for lr in (0.001, 0.01, 0.1)]
    assert drawn == [tuple(chosen.values()) for chosen, _ in draws(SPACE, seed=0)]
    assert drawn != [tuple(chosen.values()) for chosen, _ in draws(SPACE, seed=1)]


def test_drawn_tables_hold_the_choice_and_what_is_fixed():
    chosen, tables = next(iter(draws(SPACE, seed=0)))
    assert tables["model"] == {"hidden_channels": chosen["model.hidden_channels"], "norm": "none"}
    assert tables["train"] == {"lr": chosen["train.lr"], "epochs": 3}


def test_a_huge_space_is_drawn_without_listing_it():
    space = {"train": {f"x{k}": list(range(10)) for k in range(9)}}
    drawn = [tuple(chosen.values()) for (chosen, _), _ in zip(draws(space, 0), range(50), strict=False)]
    assert len(set(drawn)) == 50


def test_trials_come_best_validation_first_and_are_not_done_again(tmp_path, no_training):
    options = {"trials": 4, "place": Place(tmp_path, device="cpu")}
    found = search(SPEC, SPACE, **options)
    values = [trial.run.val.mean for trial in found]
    assert len(found) == 4
    assert values == sorted(values, reverse=True)
    no_training()
    again = search(SPEC, SPACE, **options)
    assert [trial.chosen for trial in again] == [trial.chosen for trial in found]


def test_more_trials_than_settings_try_all():
    assert len(search(SPEC, SPACE, trials=99, place=HERE)) == 6


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        ({"train": {"lr": []}}, "the list of choices of train.lr is empty"),
        ({"lr": 0.1}, "setting 'lr' must be a table, but is 0.1"),
        ({"train": {"lr": [0.1, "a"]}}, "train.lr"),
    ],
    ids=["empty", "no-table", "last-choice"],
)
def test_a_mistake_is_told_before_anything_is_tried(no_training, space, sentence):
    no_training()
    with pytest.raises(UserError, match=sentence):
        search(SPEC, space, trials=2, place=HERE)


def test_values_of_several_metrics_are_not_compared(no_training):
    with pytest.raises(UserError, match=r"by one metric: give data.metric one value"):
        search(SPEC, {"data": {"metric": ["accuracy", "macro_f1"]}}, trials=2, place=HERE)


def test_a_search_needs_validation_nodes():
    spec = RunSpec.of(changed(small_data(), val_mask=None), "mlp", splits=[0], settings={"train": {"select": "last"}})
    with pytest.raises(UserError, match="a search compares settings on validation nodes"):
        search(spec, SPACE, trials=2, place=HERE)


def test_a_choice_counts_once():
    assert [chosen for chosen, _ in draws({"train": {"lr": [0.1, 0.1]}}, 0)] == [{"train.lr": 0.1}]
    assert choices({"model": {"residual": [True, 1]}}) == {"model.residual": [True, 1]}


def test_a_setting_that_diverges_comes_last_and_is_not_tried_again(tmp_path, no_training):
    space = {"train": {"lr": [1e30, 0.01], "epochs": 3}}
    for _ in range(2):
        found = search(SPEC, space, trials=2, place=Place(tmp_path, device="cpu"))
        assert [(trial.chosen["train.lr"], trial.run is None) for trial in found] == [(0.01, False), (1e30, True)]
        no_training()
