"""Tables of predictions, and which models they come from."""

import math

import pytest
import torch

from gumbel_mpnn.runs.predict import predictions_of
from gumbel_mpnn.util.errors import UserError
from helpers import changed, small_data
from quick_fit import quick


@pytest.fixture(scope="module")
def data():
    """Three splits; node 0 is trained on in all, node 1 tested in all, node 2 has no label."""
    data = changed(small_data(splits=3), class_names=["ant", "bee", "cow"], node_ids=[f"n{k}" for k in range(24)])
    data.train_mask[0], data.val_mask[0], data.test_mask[0] = True, False, False
    data.train_mask[1], data.val_mask[1], data.test_mask[1] = False, False, True
    data.train_mask[2] = data.val_mask[2] = data.test_mask[2] = False
    data.y = data.y.clone()
    data.y[2] = -1
    return data


@pytest.fixture(scope="module")
def run(data):
    return quick(data, seeds=2)


def test_out_of_fold_is_the_mean_over_the_runs_that_did_not_use_the_node(run, data):
    each = [quick(data, splits=[r.split], seeds=[r.seed]).predict_proba() for r in run.records]
    found = run.predict_proba(out_of_fold=True)
    for node in range(24):
        unseen = [
            probability[node]
            for record, probability in zip(run.records, each, strict=True)
            if not (data.train_mask | data.val_mask)[node, record.split]
        ]
        if unseen:
            torch.testing.assert_close(found[node], torch.stack(unseen).mean(0), rtol=1e-4, atol=1e-5)
        else:
            assert found[node].isnan().all()
    assert found[0].isnan().all()
    torch.testing.assert_close(found[1:3], run.predict_proba()[1:3])


def test_out_of_fold_is_about_the_training_graph(run):
    with pytest.raises(UserError, match="out_of_fold needs the splits of the training graph"):
        run.predict_proba(small_data(), out_of_fold=True)


def test_the_table(run, data):
    table = run.predictions()
    assert list(table.columns) == [
        "node", "label", "trained", "validated", "tested", "out_of_fold", "out_of_fold_probability", "average",
        "average_probability", "out_of_fold[ant]", "out_of_fold[bee]", "out_of_fold[cow]", "average[ant]",
        "average[bee]", "average[cow]",
    ]  # fmt: skip
    assert table["node"].tolist() == data.node_ids
    assert table["label"].tolist()[2] is None
    assert table["label"].tolist()[3] == ["ant", "bee", "cow"][int(data.y[3])]
    used = table[["trained", "validated", "tested"]].to_numpy().tolist()
    assert used[:3] == [["0 1 2", "", ""], ["", "", "0 1 2"], ["", "", ""]]
    for node in range(24):
        parts = zip(used[node], (data.train_mask, data.val_mask, data.test_mask), strict=True)
        for written, mask in parts:
            assert written == " ".join(str(split) for split in range(3) if mask[node, split])
    assert table["average"].tolist() == run.predict()
    torch.testing.assert_close(torch.tensor(table["average[bee]"], dtype=torch.float32), run.predict_proba()[:, 1])
    assert table["out_of_fold"].tolist()[0] is None
    assert math.isnan(table["out_of_fold_probability"][0])
    assert table["out_of_fold"].tolist()[1] == table["average"][1]


def test_splits_that_were_not_trained_on_are_not_shown(data):
    table = quick(data, splits=[2]).predictions()
    assert set(table["trained"]) <= {"", "2"}
    assert table["trained"][0] == "2"


def test_classes_without_names_stay_integers():
    table = quick().predictions()
    assert all(isinstance(label, int) for label in table["label"])
    assert "average[2]" in table


def test_another_graph(run):
    grown = changed(small_data(nodes=30, seed=1), node_ids=[f"m{k}" for k in range(30)])
    table = predictions_of(run, grown)
    assert list(table.columns) == [
        "node", "prediction", "probability", "probability[ant]", "probability[bee]", "probability[cow]",
    ]  # fmt: skip
    assert table["node"].tolist() == grown.node_ids
    assert table["prediction"].tolist() == run.predict(grown)
    torch.testing.assert_close(
        torch.tensor(table["probability"], dtype=torch.float32), run.predict_proba(grown).max(-1).values
    )


def test_names_of_classes_that_no_node_has():
    data = changed(small_data(), class_names=["ant", "bee", "cow", "doe"])
    run = quick(data)
    assert list(run.predictions().columns)[-3:] == ["average[ant]", "average[bee]", "average[cow]"]
    assert list(predictions_of(run, data).columns)[-1] == "probability[cow]"
