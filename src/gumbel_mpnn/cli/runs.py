"""`gumbel-mpnn runs`: what was trained."""

from __future__ import annotations

from pathlib import Path

from gumbel_mpnn.cli.common import FormatOption, OutputFormat, RunsOption, emit, in_one_sentence


@in_one_sentence
def runs(runs: RunsOption = Path("runs"), format: FormatOption = OutputFormat.text) -> None:
    """List the finished runs, one row for each setting."""
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.runs import Record, Summary, find_records

    settings: dict[Path, list[Record]] = {}
    for folder, record in find_records(runs):
        settings.setdefault(folder.parent, []).append(record)
    rows = [
        [
            records[0].settings["dataset"],
            records[0].settings["model"]["name"],
            records[0].metric,
            len(records),
            100 * (test := Summary.of(record.test for record in records)).mean,
            100 * test.std,
            str(folder),
        ]
        for folder, records in settings.items()
    ]
    columns = ["dataset", "model", "metric", "n", "test", "std", "folder"]
    emit(Table(columns, rows, headings={"dataset": "data set", "n": "runs"}), format)
