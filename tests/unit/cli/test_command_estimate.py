"""`gumbel-mpnn estimate`."""

import json

import pytest

from gumbel_mpnn.cli.estimate import duration, size


def test_numbers_give_a_table_and_a_verdict(command):
    done = command("estimate", "--nodes", "1e9", "--edges", "10_000_000_000", "--features", "128", "--device", "h200")
    assert done.exit_code == 0
    assert "1,000,000,000" in done.stdout
    assert "TiB" in done.stdout
    assert "it needs at least" in done.stderr
    assert "coefficients: NVIDIA H200" in done.stderr


def test_json_is_alone_on_standard_output(command):
    done = command("estimate", "demo", "--model", "gcn", "--memory", "4", "--format", "json")
    found = json.loads(done.stdout)
    assert found["model"] == "gcn"
    assert found["device_memory"] == 4 * 2**30
    assert found["fits"] is True


def test_own_files(command, tmp_path):
    (tmp_path / "nodes.csv").write_text("id,size,kind\n" + "".join(f"n{k},{k},{'ab'[k % 2]}\n" for k in range(12)))
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"n{k},n{k + 1}\n" for k in range(11)))
    files = ["--nodes", str(tmp_path / "nodes.csv"), "--edges", str(tmp_path / "edges.csv"), "--label", "kind"]
    found = json.loads(command("estimate", *files, "--format", "json").stdout)
    assert (found["nodes"], found["edges"], found["features"], found["classes"]) == (12, 11, 1, 2)


def test_parameters_that_do_not_fit(command):
    sizes = ["--nodes", "100", "--edges", "100", "--features", "10"]
    done = command("estimate", *sizes, "--memory", "1", "--set", "model.hidden_channels=1000000")
    assert "does not fit" in done.stdout
    assert "the parameters alone do not fit: try a smaller model.hidden_channels" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nodes", "5"], "give all three numbers, --nodes, --edges and --features"),
        (["--nodes", "5", "--edges", "edges.csv"], "--edges must be a number beside other numbers, not 'edges.csv'"),
        (["--nodes", "5.5", "--edges", "5", "--features", "1"], "5.5 is not a whole number"),
        ([], "give the name of a data set"),
    ],
)
def test_mistakes(command, arguments, message):
    done = command("estimate", *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("bytes_", "words"),
    [(0, "0 bytes"), (1023, "1,023 bytes"), (1536, "1.5 KiB"), (5 * 2**40, "5 TiB"), (2**62, "4,096 PiB")],
)
def test_sizes_in_words(bytes_, words):
    assert size(bytes_) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "none"),
        (0.0123, "12.3 ms"),
        (1, "1 s"),
        (119, "119 s"),
        (121, "2.02 min"),
        (7200, "2 h"),
        (1e11, "3,169 years"),
    ],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words
