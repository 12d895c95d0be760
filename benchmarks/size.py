"""The size of the house against its ceilings: lines, modules, the walk of one weight, settings, presets, words of docs.

python benchmarks/size.py          # half a minute; prints a table, and fails if something is above its ceiling
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from gumbel_mpnn.settings.settings import TABLES
from walk import walk, write_graph

ROOT = Path(__file__).parents[1]
CEILINGS = {
    "lines of src": 20_000,
    "modules of src": 130,
    "lines of experiments": 6_500,
    "lines of tests": 26_000,
    "modules of the walk": 43,  # 35 is wanted
    "settings": 32,
    "preset files": 8,
    "words of docs": 60_000,
}


def python_files(folder: str) -> list[Path]:
    """All Python files below a folder of the repository."""
    return sorted((ROOT / folder).rglob("*.py"))


def lines(files: Iterable[Path]) -> int:
    """Number of lines, blank ones and comments included."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def words(files: Iterable[Path]) -> int:
    """Number of words; marks that stand alone, such as those of tables, are none."""
    return sum(len(re.findall(r"\S*\w\S*", file.read_text(encoding="utf-8"))) for file in files)


def walked() -> int:
    """Number of modules in which a function runs between a CSV file and a prediction."""
    quiet = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_graph(Path(folder))
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            return len(walk(Path(folder))[0])


def sizes() -> dict[str, int]:
    """All that is counted, by the names of `CEILINGS`."""
    pages = [page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts]
    settings = [item for table in TABLES.values() for item in dataclasses.fields(table) if "help" in item.metadata]
    return {
        "lines of src": lines(python_files("src")),
        "modules of src": len(python_files("src")),
        "lines of experiments": lines(python_files("experiments")),
        "lines of tests": lines(python_files("tests")),
        "modules of the walk": walked(),
        "settings": len(settings),
        "preset files": len(list((ROOT / "src/gumbel_mpnn/settings/presets").rglob("*.toml"))),
        "words of docs": words(pages),
    }


def main() -> int:
    """Print every size beside its ceiling; returns 1 if one is above."""
    found = sizes()
    for name, size in found.items():
        mark = "" if size <= CEILINGS[name] else "   above"
        print(f"{name:22}{size:>9,} of {CEILINGS[name]:>7,}{mark}")
    return int(any(size > CEILINGS[name] for name, size in found.items()))


if __name__ == "__main__":
    sys.exit(main())
