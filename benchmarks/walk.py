"""The walk of one edge's weight from a CSV file to a result, and the size of the code, counted.

Trains Gumbel-MPNN on a small CSV graph with edge weights and a settings file, as the command does. Counts the modules
of the package in which a function runs, the calls of functions that check edges and weights, and how often the settings
file is parsed. Then counts lines, modules, layers of the import linter and the longest signature of the source.

python benchmarks/walk.py          # half a minute; prints and writes nothing
"""

from __future__ import annotations

import ast
import os
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from types import FrameType

import gumbel_mpnn

PACKAGE = Path(gumbel_mpnn.__file__).parent
ROOT = PACKAGE.parents[1]
CHECKS = {"check_weights", "check_edges", "check", "validate", "check_candidates"}
SETTINGS = "[train]\nepochs = 2\n[model]\nhidden_channels = 8\n"


def write_graph(folder: Path) -> None:
    """Sixty nodes of two classes in a ring, with weights and features."""
    rows = [f"n{k},{k % 2},{k % 7},{k % 5}" for k in range(60)]
    (folder / "nodes.csv").write_text("\n".join(["id,class,a,b", *rows]) + "\n")
    edges = [f"n{k},n{(k + 1) % 60},0.5" for k in range(60)]
    (folder / "edges.csv").write_text("\n".join(["source,target,weight", *edges]) + "\n")
    (folder / "mine.toml").write_text(SETTINGS)


def walk(folder: Path) -> tuple[set[str], Counter[str], int]:
    """Modules in which a function ran, calls of checks, and parses of the settings file."""
    from gumbel_mpnn.cli import app

    modules, checks, parses = set[str](), Counter[str](), [0]
    loads = tomllib.loads

    def counted(text: str, **options: object) -> object:
        parses[0] += text == SETTINGS
        return loads(text, **options)  # type: ignore[arg-type]

    def watch(frame: FrameType, event: str, _: object) -> None:
        if frame.f_back is None or frame.f_code.co_name == "<module>" or event != "call":  # an import runs a module too
            return
        if frame.f_code.co_filename.startswith(str(PACKAGE)) and not _is_import(frame):
            modules.add(str(Path(frame.f_code.co_filename).relative_to(PACKAGE)))
            if frame.f_code.co_name in CHECKS:
                checks[frame.f_code.co_name] += 1

    arguments = ["train", "--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "class", "--model", "gumbel-mpnn"]
    arguments += ["--preset", "mine.toml", "--predictions", "out.csv", "--device", "cpu"]
    tomllib.loads = counted  # type: ignore[assignment]
    os.chdir(folder)
    sys.setprofile(watch)
    try:
        app(arguments, standalone_mode=False)
    finally:
        sys.setprofile(None)
        tomllib.loads = loads
    return {name for name in modules if not name.endswith("__init__.py")}, checks, parses[0]


def _is_import(frame: FrameType | None) -> bool:
    """Whether a function runs while a module is imported, as decorators do."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            return True
        frame = frame.f_back
    return False


def longest_signature(files: list[Path]) -> tuple[int, str]:
    """Number of parameters of the function that has most, verbs and GPU kernels left out, and its name."""
    found = [
        (len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs), f"{file.stem}.{node.name}")
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and not {"cli", "kernels"} & set(file.parts) and "triton" not in file.stem
    ]
    return max(found)


def main() -> None:
    """Count and print."""
    source, tests = sorted(PACKAGE.rglob("*.py")), sorted((ROOT / "tests").rglob("*.py"))
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    with tempfile.TemporaryDirectory() as folder:
        write_graph(Path(folder))
        modules, checks, parses = walk(Path(folder))
        os.chdir(ROOT)
    count, name = longest_signature(source)
    rooms: Counter[str] = Counter(name.split("/")[0] for name in modules)
    print(f"modules passed by a weight on its way from CSV to predictions: {len(modules)} {dict(rooms)}")
    print(f"calls of checks of edges and weights: {sum(checks.values())} {dict(checks)}")
    print(f"parses of the settings file: {parses}")
    print(f"src: {sum(len(f.read_text().splitlines()) for f in source)} lines in {len(source)} modules")
    print(f"tests: {sum(len(f.read_text().splitlines()) for f in tests)} lines in {len(tests)} modules")
    print(f"import layers: {len(linter['contracts'][0]['layers'])}; longest signature: {count} parameters ({name})")


if __name__ == "__main__":
    main()
