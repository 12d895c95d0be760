"""`gumbel-mpnn demo`, with a few epochs and splits of it."""

import json

import matplotlib.image
import pytest

from gumbel_mpnn.report import demo as experiment

fit = experiment.fit


@pytest.fixture(autouse=True)
def short(monkeypatch):
    def few_epochs(*arguments, **keywords):
        keywords["overrides"] = ["train.epochs=3", "model.hidden_channels=8"]
        return fit(*arguments, splits=[0, 1], **keywords)

    monkeypatch.setattr(experiment, "fit", few_epochs)


def test_a_table_a_page_and_a_figure(command, here):
    result = command("demo", "--device", "cpu")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[1].rstrip(":") for line in lines[2:]] == list(experiment.MODELS)
    out = here / "gumbel-mpnn-demo"
    assert sorted(path.name for path in out.iterdir()) == ["demo.html", "demo.md", "demo.png", "runs"]
    assert (out / "demo.md").read_text().splitlines()[0].startswith("| data set | model | ")
    pixels = matplotlib.image.imread(out / "demo.png")
    assert min(pixels.shape[:2]) > 300
    assert pixels[..., :3].std() > 0.01
    assert '"name":"Gumbel-MPNN"' in (out / "demo.html").read_text()
    assert result.stderr.splitlines()[-2:] == [
        "the table is in gumbel-mpnn-demo/demo.md, the figure in gumbel-mpnn-demo/demo.png, "
        "the runs in gumbel-mpnn-demo/runs",
        "open gumbel-mpnn-demo/demo.html in a browser: how good the models are, what they changed, and the graph",
    ]


def test_json_is_a_list_with_an_object_for_each_model(command, here):
    shown = json.loads(command("demo", "--out", "shown", "--device", "cpu", "--format", "json").stdout)
    assert [one["model"] for one in shown[:-1]] == list(experiment.MODELS)[:-1]
    assert shown[-1].pop("choice")["chosen"]
    for one in shown:
        assert list(one) == ["dataset", "model", "metric", "unit", "n", "test", "val", "seconds", "runs"]
        assert (one["dataset"], one["n"]) == ("demo", 2)
        assert all((here / folder / "record.json").is_file() for folder in one["runs"])
        assert one["runs"][0].startswith(f"shown/runs/demo/demo/{one['model']}/")


def test_a_second_call_trains_nothing(command, no_training):
    first = command("demo", "--device", "cpu", "--format", "json")
    no_training()
    again = command("demo", "--device", "cpu", "--format", "json")
    assert again.stdout == first.stdout
    assert "mlp on demo: all 2 runs were already finished" in again.stderr


def test_a_file_where_the_folder_should_be(command, here):
    (here / "busy").write_text("a diary")
    result = command("demo", "--out", "busy", "--device", "cpu")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("error: ")
    assert (here / "busy").read_text() == "a diary"
