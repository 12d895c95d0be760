"""Frames a second while the explorer of a page is dragged, measured by chromium, and the time to make the page.

Chromium runs without a window and without a GPU, so that the processor draws. The drag goes beyond what is drawn
around the window, so that the graph is drawn anew on the way. Beside it stands the plain way, which draws everything
in every frame. The browser shows 60 frames a second at most.

python benchmarks/page_browser.py          # 3,000 nodes and 20,000 edges
python benchmarks/page_browser.py --toy    # seconds, for the tests; nothing is written
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

import harness

SLICED, WHOLE = "picture moved, drawn anew in slices", "everything drawn in every frame"
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--window-size=1300,900")
PAN = """
const [frames, whole, done] = arguments;
document.getElementById("explorer").scrollIntoView();
const box = explorer.canvas.getBoundingClientRect(), x = box.left + box.width / 2, y = box.top + box.height / 2;
const send = (name, clientX, target) =>
  target.dispatchEvent(new MouseEvent(name, { view: window, bubbles: true, cancelable: true, clientX, clientY: y }));
const times = [];
send("mousedown", x, explorer.canvas);
const step = (now) => {
  times.push(now);
  if (times.length > frames) {
    send("mouseup", x, window);
    return done(times);
  }
  send("mousemove", x + 0.9 * box.width * Math.sin(times.length / 30), window);
  if (whole) {
    explorer.redraw();
    while (explorer.job) explorer.work();
    explorer.paint();
  }
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""
SETTLED = """
const done = arguments[0];
const look = () => (explorer.layout.settled && !explorer.job ? done(performance.now()) : setTimeout(look, 20));
look();
"""
"""Milliseconds until the layout of the graph is at rest, from the opening of the page."""


def graph(nodes: int, edges: int) -> Data:
    """A random graph of six classes, most of whose edges are between nodes of near numbers and the same class."""
    rng = np.random.default_rng(0)
    source = rng.integers(nodes, size=4 * edges)
    near = (source + 6 * rng.integers(1, 40, size=len(source))) % nodes
    target = np.where(rng.random(len(source)) < 0.8, near, rng.integers(nodes, size=len(source)))
    pairs = np.unique(np.sort(np.stack([source, target], 1)[source != target], axis=1), axis=0)
    pairs = torch.from_numpy(rng.permutation(pairs)[:edges].T.copy())
    y, part = torch.arange(nodes) % 6, torch.from_numpy(rng.permutation(nodes) % 3)
    return Data(
        x=torch.from_numpy(rng.normal(size=(nodes, 16))).float() + 0.3 * y[:, None],
        y=y,
        edge_index=torch.cat([pairs, pairs.flip(0)], 1),
        train_mask=part == 0,
        val_mask=part == 1,
        test_mask=part == 2,
    )


def write(folder: Path, nodes: int, edges: int) -> tuple[Path, dict[str, Any]]:
    """The page of a run on such a graph, and what it took."""
    import gumbel_mpnn as gm

    data, path = graph(nodes, edges), folder / "page.html"
    run = gm.fit(data, "gumbel-mpnn", overrides=["train.epochs=3"], runs=folder / "runs", device="cpu", progress=False)
    pairs = gm.measures.undirected_edges(data).numpy()
    page_s = harness.seconds(lambda: run.page(path))
    return path, {"nodes": nodes, "edges": pairs.shape[1], "page_s": page_s, "page_mb": path.stat().st_size / 1e6}


def figures(times: list[float]) -> dict[str, float]:
    """Frames a second, and the milliseconds of the slowest frames, of the times at which frames began."""
    gaps = np.diff(times)
    return {
        "fps": 1e3 / float(gaps.mean()),
        "p95_ms": float(np.quantile(gaps, 0.95)),
        "slowest_ms": float(gaps.max()),
    }


def main() -> None:
    """Measure, print, and write the result."""
    options = harness.arguments(__doc__, rounds=5).parse_args()
    chromium, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver_path:
        raise SystemExit("this benchmark needs chromium and chromedriver on the path")
    from selenium import webdriver

    settings = webdriver.ChromeOptions()
    settings.binary_location = chromium
    for option in OPTIONS:
        settings.add_argument(option)
    nodes, edges, frames, rounds = (60, 150, 20, 1) if options.toy else (3000, 20_000, 240, options.rounds)
    with tempfile.TemporaryDirectory() as name:
        path, facts = write(Path(name), nodes, edges)
        driver = webdriver.Chrome(options=settings, service=webdriver.ChromeService(driver_path))
        try:
            driver.set_script_timeout(120)
            driver.get(path.as_uri())
            facts["settled_s"] = driver.execute_async_script(SETTLED) / 1e3
            facts["drawn"] = driver.find_element("id", "scope").text.partition(".")[0]
            found: dict[str, list[dict[str, float]]] = {SLICED: [], WHOLE: []}
            for _ in range(rounds):
                for program, samples in found.items():
                    samples.append(figures(driver.execute_async_script(PAN, frames, program == WHOLE)))
            browser = f"Chromium {driver.capabilities['browserVersion']}"
        finally:
            driver.quit()
    median = {
        program: {key: statistics.median(each[key] for each in samples) for key in samples[0]}
        for program, samples in found.items()
    }
    print(f"page_browser: {facts['drawn']}")
    for program, of in median.items():
        print(f"  {program:40s} {of['fps']:6.1f} frames a second, slowest frame {of['slowest_ms']:6.1f} ms")
    result = {"facts": facts, "frames": median, "rounds": rounds, "browser": browser}
    harness.save("page_browser", result, harness.folder(options))


if __name__ == "__main__":
    main()
