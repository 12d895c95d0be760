"""`fit` on a small graph in a moment, and what must be equal between two runs of it."""

import json
from dataclasses import fields, replace
from tempfile import TemporaryDirectory

from gumbel_mpnn.runs.predict import TrainingData
from gumbel_mpnn.runs.session import Session
from gumbel_mpnn.runs.spec import RunSpec
from gumbel_mpnn.util.files import json_with_checksum, read_json, read_lines
from helpers import small_data

TABLES = {"model": {"hidden_channels": 8, "dropout": 0.3}, "train": {"lr": 0.01, "epochs": 6}}
HOW = [field.name for field in fields(Session)]
"""Arguments of `Session`; all others are those of `RunSpec.of`."""


def spec_and_session(dataset, model, runs, **arguments):
    """What is wanted, and where and how it is made."""
    how = {name: arguments.pop(name) for name in HOW if name in arguments}
    return RunSpec.of(dataset, model, **arguments), Session(runs, **how)


def fit(dataset, model, runs=None, **arguments):
    """`gm.fit` with every argument of `Session`."""
    temporary = TemporaryDirectory() if runs is None else None
    spec, session = spec_and_session(dataset, model, runs or temporary.name, **arguments)
    return replace(session.fit(spec), _temporary=temporary)


def find(dataset, model, runs, **arguments):
    """What `fit` with the same arguments would give, if it is finished."""
    spec, session = spec_and_session(dataset, model, runs, **arguments)
    return session.find(spec)


def resolved(dataset, model, **arguments):
    """The settings that `fit` with these arguments has."""
    return RunSpec.of(dataset, model, **arguments).settings


def quick(data=None, model="gcn", **changes):
    """A narrow model on `small_data`, for six epochs."""
    return fit(small_data() if data is None else data, model, **{"settings": TABLES, "device": "cpu", **changes})


def on_other_data(run, data):
    """The run as if it had been trained on these data."""
    return replace(run, trained_on=TrainingData(data))


def names(run):
    """(split, seed) of every record, in order."""
    return [(record.split, record.seed) for record in run.records]


def figures(run):
    """Everything in the records that does not depend on the machine's speed."""
    return [(r.split, r.seed, r.val, r.test, r.best_epoch, r.epochs) for r in run.records]


def stored(run):
    """What the run folders hold besides the records, byte for byte."""
    return [
        [(folder / name).read_bytes() for name in ("history.jsonl", "model.safetensors")]
        for folder in (run.folder.path / f"split{split}-seed{seed}" for split, seed in names(run))
    ]


def contents(runs):
    """Every file of a store, records without the time they took."""
    files = {}
    for path in runs.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if path.name == "record.json":
                content = {
                    key: value for key, value in json.loads(content).items() if key not in ("seconds", "checksum")
                }
            files[str(path.relative_to(runs))] = content
    return files


def edit(path, **entries):
    """Change entries of a record as its own version would write them, with a right checksum."""
    path.write_bytes(json_with_checksum({**read_json(path.read_bytes()), **entries}))


def history(run, record):
    """Rows of the history of a run."""
    path = run.folder.folder(record.replica) / "history.jsonl"
    return read_lines(path.read_bytes())
