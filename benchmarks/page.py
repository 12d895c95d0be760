"""Write the tables of docs/performance.md and docs/scale.md from the files in benchmarks/results, between markers.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`; what is there is replaced. Nothing else is touched.

python benchmarks/page.py            # after a benchmark
python benchmarks/page.py --check    # for the tests: fails if the page does not say what the files say
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGES = [Path(__file__).parents[1] / "docs" / name for name in ("performance.md", "scale.md")]
MARKED = re.compile(r"(?P<open><!-- table: (?P<name>[\w-]+) -->\n).*?(?P<close><!-- end -->)", re.DOTALL)
GPU_IF_THERE = ("partitions", "start_up")
"""Benchmarks that use a GPU where there is one, besides those that need it, whose names end in `_gpu`."""
SHOWN = (1, 10, 100)
"""Numbers of runs at once that a page shows; the files have more."""

Result = dict[str, Any]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown; the first column is text, the others are figures."""
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine(result: Result) -> str:
    """What it was measured on, in words: a GPU only if the benchmark uses one."""
    of, name = result["machine"], result["benchmark"]
    on_gpu = of["gpu"] != "none" and (name.endswith("_gpu") or name in GPU_IF_THERE)
    where = of["gpu"] if on_gpu else f"{of['processor']}, {of['threads']} threads"
    return f"`python benchmarks/{name}.py`: {where}, torch {of['torch']}, PyG {of['torch_geometric']}."


def facts(result: Result) -> str:
    """The size of the task, in words."""
    return "; ".join(f"{key} {_count(value)}" for key, value in result["facts"].items()) + "."


def timings(result: Result) -> str:
    """Medians and ratios of programs that alternated."""
    heads = ["program", "ms", f"of {result['ratio_to']}"]
    rows = [[name, _ms(ms), f"{result['ratio'][name]:.2f}"] for name, ms in result["median_ms"].items()]
    return "\n\n".join([table(heads, rows), f"{facts(result)} Median of {result['rounds']}. {machine(result)}"])


def step_gpu(result: Result) -> str:
    """Time, memory, and the share of the machine's ceilings."""
    heads = ["program", "ms per step", f"of {result['ratio_to']}", "peak GiB", "reserved GiB"]
    rows = [
        [name, _ms(ms), f"{result['ratio'][name]:.2f}", *_memory(result["peak_gib"][name])]
        for name, ms in result["median_ms"].items()
    ]
    counted = [
        [name, f"{of['bytes'] / 1e9:.1f}", f"{of['flops'] / 1e9:.0f}", f"{of['ceiling_ms']:.1f}", f"{of['share']:.0%}"]
        for name, of in result["counted"].items()
    ]
    limits = result["ceilings"]
    missing = _left_out(result)
    return "\n\n".join(
        [
            table(heads, rows),
            *missing,
            f"{facts(result)} Median of {result['rounds']}. {machine(result)}",
            "What the machine can do, measured in the same process: it copies"
            f" {limits['copy_bytes_per_s'] / 1e12:.2f} TB a second (read and written) and multiplies float32 matrices"
            f" at {limits['float32_flops_per_s'] / 1e12:.1f} TFLOP/s, in TF32 at"
            f" {limits['tf32_flops_per_s'] / 1e12:.1f}.",
            table(["program", "GB counted", "G operations", "ms at the ceilings", "share reached"], counted),
        ]
    )


def scale_gpu(result: Result) -> str:
    """One row for each number of arcs."""
    heads = ["arcs", "nodes", "ms per step", "per million arcs", "peak GiB", "per million arcs"]
    rows = [
        [
            f"{row['arcs']:,}",
            f"{row['nodes']:,}",
            _ms(row["step_ms"]),
            f"{row['step_ms_per_million']:.2f}",
            *(
                ["–", "–"]
                if row["peak_gib"] is None
                else [f"{row['peak_gib']:.2f}", f"{row['peak_gib_per_million']:.3f}"]
            ),
        ]
        for row in result["rows"]
    ]
    end = result["did_not_fit"]
    more = "All sizes that were tried fit." if end is None else f"{end['arcs']:,} arcs do not fit: {end['why']}"
    return "\n\n".join([table([*heads], rows), f"{more} {facts(result)} {machine(result)}"])


def partitions(result: Result) -> str:
    """One row for each graph, whole and in parts."""
    heads = ["graph", "trained on", "test %", "std", "runs", "nodes at once", "pairs at once", "GPU GiB"]
    rows = [
        [
            found["graph"],
            name,
            *(f"{found[name][figure]:.2f}" for figure in ("test", "std")),
            *(f"{found[name][figure]:,}" for figure in ("runs", "largest_nodes", "largest_pairs")),
            "–" if found[name]["peak_gib"] is None else f"{found[name]['peak_gib']:.2f}",
        ]
        for found in result["results"]
        for name in ("whole", "parts")
    ]
    recalls = [
        f"{found['graph']} {found['candidates']['recall']:.3f}" for found in result["results"] if "candidates" in found
    ]
    share = (
        f"Share of the exact candidates that the approximate search finds: {', '.join(recalls)}. " if recalls else ""
    )
    return "\n\n".join([table(heads, rows), f"{share}{facts(result)} {machine(result)}"])


def replicas_gpu(result: Result) -> str:
    """Milliseconds of a run's epoch by the number of runs at once, and the ratios."""
    each, at_once = result["ms_per_run_and_epoch"], result["at_once"]
    rows = [[name, f"{ms:.3f}", f"{1e3 / ms:,.0f}"] for name, ms in each.items() if at_once[name] in SHOWN]
    heads = ["program", "ms of a run's epoch", "runs × epochs a second"]
    many = max(at_once.values())
    ratios = [
        [f"our {title}, {many} at once", peer, f"{ratio:.1f}"]
        for title, of in result["times_the_throughput_of"].items()
        for peer, ratio in of.items()
    ]
    auc = result["roc_auc"]
    return "\n\n".join(
        [
            table(heads, rows),
            table(["throughput of", "against", "times"], ratios),
            f"Exact ROC-AUC of {auc['runs']} runs on {auc['nodes']:,} nodes: {auc['ours_ms']:.2f} ms on the device,"
            f" {auc['scikit_learn_ms']:.1f} ms by scikit-learn run after run ({auc['times_faster']:.0f} times).",
            *_left_out(result),
            f"{facts(result)} {machine(result)}",
        ]
    )


def replicas_cpu(result: Result) -> str:
    """Milliseconds of a run's epoch by the number of runs at once."""
    heads = ["program", "runs at once", "MiB of a layer", "ms of a run's epoch"]
    rows = [
        [row["program"], str(row["at_once"]), f"{row['layer_mib']:.1f}", _ms(row["ms"])]
        for row in result["rows"]
        if row["at_once"] in SHOWN
    ]
    return "\n\n".join([table(heads, rows), f"{facts(result)} Median of {result['rounds']}. {machine(result)}"])


def page_browser(result: Result) -> str:
    """Frames a second of each way to draw, and what the page took."""
    rows = [
        [name, f"{of['fps']:.0f}", f"{of['p95_ms']:.0f}", f"{of['slowest_ms']:.0f}"]
        for name, of in result["frames"].items()
    ]
    facts = result["facts"]
    made = (
        f"{facts['drawn']}. Writing the page takes {facts['page_s']:.1f} s; it has"
        f" {facts['page_mb']:.1f} MB. Median of {result['rounds']}. {result['browser']}, no GPU. {machine(result)}"
    )
    heads = ["program", "frames a second", "ms of 95 % of the frames, at most", "slowest frame, ms"]
    return "\n\n".join([table(heads, rows), made])


TABLES: dict[str, Callable[[Any], str]] = {
    "step_gpu": step_gpu,
    "scale_gpu": scale_gpu,
    "partitions": partitions,
    "replicas_gpu": replicas_gpu,
    "step_cpu": timings,
    "replicas_cpu": replicas_cpu,
    "candidates": timings,
    "start_up": timings,
    "page_browser": page_browser,
}


def render(name: str, results: Path) -> str:
    """The table called `name`, or the words that there is none yet."""
    result = _read(results, name)
    return _not_measured(name) if result is None else TABLES[name](result)


def fill(text: str, results: Path) -> str:
    """The page with all its tables made anew."""
    return MARKED.sub(lambda at: f"{at['open']}\n{render(at['name'], results)}\n\n{at['close']}", text)


def main() -> None:
    """Fill the pages, or say whether they are filled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = fill(before, RESULTS)
        if not options.check:
            page.write_text(after, encoding="utf-8")
        elif after != before:
            sys.exit(f"docs/{page.name} is not what the results say: run benchmarks/page.py")
    if options.check:
        sys.exit()


def _read(results: Path, name: str) -> Result | None:
    path = results / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _not_measured(name: str) -> str:
    return f"Not measured yet (`python benchmarks/{name}.py`)."


def _ms(value: float) -> str:
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _left_out(result: dict[str, Any]) -> list[str]:
    """A sentence for each program that could not run: the first of its error's."""
    return [f"{name} is left out: {why.split('. ')[0]}." for name, why in result["left_out"].items()]


def _memory(peak: dict[str, float] | None) -> list[str]:
    return ["–", "–"] if peak is None else [f"{peak['allocated']:.2f}", f"{peak['reserved']:.2f}"]


if __name__ == "__main__":
    main()
