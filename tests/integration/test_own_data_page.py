"""The way of a user with two CSV files, as docs/own-data.md goes it: every block of the page is run, in order."""

import csv
import json
import re
import shlex
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import gumbel_mpnn as gm
from gumbel_mpnn.cli import app
from gumbel_mpnn.util.errors import DataWarning

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"
PEOPLE, NEW, WRONG = 80, 6, 10
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)


def write(path, header, lines):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *lines])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """People of two groups, most of whose contacts are of their own group, and ten edges that are wrong.

    The files with more people have the same columns in another order, without the groups.
    """
    folder = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(0)
    group = np.arange(PEOPLE + NEW) % 2
    people = [
        {
            "name": f"p{k}",
            "age": f"{40 + 8 * g + rng.normal(scale=5):.1f}",
            "city": ["Bern", "Genf", "Chur"][rng.integers(3)] if g else ["Bern", "Genf"][rng.integers(2)],
            "member": "yes" if rng.random() < (0.7 if g else 0.3) else "no",
            "note": f"asked for {k} things in {rng.integers(1000)} days",
            "group": "" if k % 10 == 7 else "ab"[g],
        }
        for k, g in enumerate(group)
    ]
    pairs = {(a, b) for a, b in rng.integers(PEOPLE + NEW, size=(900, 2)) if a < b and group[a] == group[b]}
    old = [pair for pair in sorted(pairs) if max(pair) < PEOPLE][:150]
    new = [pair for pair in sorted(pairs) if max(pair) >= PEOPLE]
    wrong = [(a, a + 1) for a in range(0, 2 * WRONG, 2)]

    def contacts(pairs):
        return [(f"p{a}", f"p{b}") for a, b in pairs]

    first = ("name", "age", "city", "member", "note", "group")
    later = ("name", "member", "city", "age")
    write(folder / "people.csv", first, [[one[column] for column in first] for one in people[:PEOPLE]])
    write(folder / "contacts.csv", ("source", "target"), contacts(old + wrong))
    write(folder / "people-new.csv", later, [[one[column] for column in later] for one in people])
    write(folder / "contacts-new.csv", ("source", "target"), contacts(old + wrong + new))
    return folder


@pytest.fixture(scope="module")
def walked(folder, tmp_path_factory):
    """Every command of the page and then its Python, in the folder of the files; what they printed and named."""
    plt.switch_backend("Agg")
    results, known, run = [], {"__name__": "page"}, ""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("GUMBEL_MPNN_DATA", str(folder))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("GUMBEL_MPNN_RUNS", raising=False)
        for line in "".join(blocks("console")).splitlines():
            name, *arguments = shlex.split(line.replace("RUN", run))
            assert name == "gumbel-mpnn"
            results.append(CliRunner().invoke(app, arguments))
            assert results[-1].exit_code == 0, results[-1].stderr
            run = run or re.search(r"runs are in (\S+)", results[-1].stderr)[1]
        known["RUN"] = run
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            for block in blocks("python"):
                exec(block, known)
        yield results, known
    plt.close("all")


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_text_is_named_and_left_out_and_the_model_learns(walked):
    train = walked[0][0]
    assert train.stderr.count("'note'") == 1
    assert f"read {PEOPLE} nodes (8 without a label)" in train.stderr
    assert ", 5 features, 2 classes" in train.stderr
    assert walked[1]["run"].test.mean > 0.7


def test_the_files(walked, folder):
    rows, run = rows_of(folder / "predictions.csv"), walked[1]["run"]
    assert [row["node"] for row in rows] == [f"p{k}" for k in range(PEOPLE)]
    for row in rows:  # whether a model had not used the node
        used = set(row["trained"].split()) | set(row["validated"].split())
        assert bool(row["out_of_fold"]) == (used != set("01234"))
    shown = [f"{value:.4f}" for value in run.predict_proba().max(-1).values.tolist()]
    assert [row["average_probability"] for row in rows] == shown
    assert {"source", "target", "probability", "given"} <= set(rows_of(folder / "learned.csv")[0])
    new = rows_of(folder / "new.csv")
    assert [row["node"] for row in new] == [f"p{k}" for k in range(PEOPLE + NEW)]
    assert [row["prediction"] for row in new] == walked[1]["names"]


def test_loading_is_exact(walked, folder):
    run, again, grown = walked[1]["run"], gm.load_run(folder / walked[1]["RUN"]), walked[1]["grown"]
    records = [json.loads((folder / place / "record.json").read_text()) for place in run.folders]
    assert [record["test"] for record in records] == [record.test for record in run.records]
    assert torch.equal(run.predict_proba(grown), again.predict_proba(grown))
    assert torch.equal(run.rewire().edge_probability, again.rewire().edge_probability)


def test_curves_plots_and_scores(walked):
    known = walked[1]
    assert set(known["curves"]["split"]) == set(range(5))
    assert known["axes"].size == 4
    assert len(known["scores"]) == 3
    assert known["scores"].mean() > 0.6
