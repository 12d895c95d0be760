"""`make faults`: all points, 1,000 kills and damaged files of all kinds; writes its counts to docs/reliability.md."""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from file_faults import FAULTS, KILL
from fuzzed_files import READERS, Corpus
from memory_faults import MEMORY

from gumbel_mpnn._version import __version__

KILLS, EXAMPLES = 1000, 500
HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reliability.md"
BLOCK = re.compile(r"(<!-- counts of `make faults` -->\n).*?(<!-- end -->)", re.DOTALL)
COLUMNS = {
    "operations": "file operations",
    "kill": "kills",
    "EIO": "EIO",
    "ENOSPC": "full disk",
    "EFBIG": "file too large",
    "memory": "failed allocations",
}


def report(program: str, *arguments: object) -> dict:
    """What a program of this folder prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]), "OMP_NUM_THREADS": "1"}
    environment["JE_ARROW_MALLOC_CONF"] = "background_thread:false"  # else pyarrow, if it is there, starts a thread
    command = [sys.executable, str(HERE / program), *map(str, arguments)]
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout)


def fuzz(folder: Path, examples: int, seed: int) -> dict:
    """Rows of the table of readers, and errors that are no sentences."""
    folder.mkdir()
    corpus, rows, problems = Corpus(folder), [], []
    for name in READERS:
        errors: set[str] = set()
        ended = corpus.fuzz(name, examples, seed, errors)
        rows.append([name, ended.total(), ended["result"], ended["sentence"], ended["error"]])
        problems += [f"{name}: {error}" for error in sorted(errors)]
        print(rows[-1], file=sys.stderr, flush=True)  # noqa: T201
    return {"rows": rows, "problems": problems}


def table(heads: list[str], rows: list[list[object]]) -> str:
    """A table in Markdown; the first column is text."""
    lines = [
        heads,
        ["---", *["--:"] * (len(heads) - 1)],
        *[[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows],
    ]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def main() -> None:
    """All of it, one process at a time but for the writers."""
    seed = random.SystemRandom().randrange(2**32)
    with tempfile.TemporaryDirectory() as name:
        folder, others = Path(name), ",".join([*FAULTS[1:], MEMORY])
        kills = report("command_faults.py", folder / "kills", "--faults", KILL, "--seed", seed)
        faults = report("command_faults.py", folder / "faults", "--faults", others, "--seed", seed)
        done = sum(counts[KILL] for counts in kills["commands"].values())
        writers = report("four_writers.py", folder / "writers", max(KILLS - done, 100), seed)
        readers = fuzz(folder / "corpus", EXAMPLES, seed)
    rows = [
        [name, *((counts | faults["commands"][name]).get(column, 0) for column in COLUMNS)]
        for name, counts in kills["commands"].items()
    ]
    rows.append(["all", *(sum(row[k] for row in rows) for k in range(1, len(COLUMNS) + 1))])
    failed = [*kills["problems"], *faults["problems"], *writers["problems"]]
    text = f"""
Version {__version__}, {datetime.now(UTC):%Y-%m-%d}, seed {seed}.

{table(["command", *COLUMNS.values()], rows)}

Four writers on one store: {writers["kills"]:,} kills in {writers["rounds"]:,} rounds with {writers["runs"]:,} runs.

{done + writers["kills"]:,} kills in total. Properties that did not hold after a kill or a fault: {len(failed)}.

{table(["reader", "damaged files", "result", "sentence", "traceback"], readers["rows"])}

Readers that do not keep the promise: {"; ".join(row[0] for row in readers["rows"] if row[-1]) or "none"}.
"""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda match: match[1] + text + match[2], page), encoding="utf-8")
    for problem in [*failed, *readers["problems"]]:
        print(problem, file=sys.stderr)  # noqa: T201
    sys.exit(bool(failed or readers["problems"]))


if __name__ == "__main__":
    main()
