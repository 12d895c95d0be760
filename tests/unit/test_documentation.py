"""README and docs: their Python runs, their links lead somewhere, and their figures are those of the result pages."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
if not DOCS.is_dir():
    pytest.skip("the documentation is not here", allow_module_level=True)
README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
WALKED = {DOCS / "own-data.md"}
"""Pages whose blocks are run in order, in a test of their own (test_own_data_page)."""


def blocks(language, page):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def python_blocks():
    for page in [README, *DOCS.glob("*.md")]:
        if page not in WALKED:
            for number, block in enumerate(blocks("python", page)):
                yield pytest.param(page, block, id=f"{page.name}-{number}")


@pytest.mark.parametrize(("page", "block"), list(python_blocks()))
def test_python_runs(page, block, tmp_path, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, str(page), "exec"), {"__name__": "page"})
    plt.close("all")
    assert [file.name for file in tmp_path.iterdir() if f'"{file.name}"' not in block] == []
    assert capsys.readouterr().err == ""


def without_code(page):
    return re.sub(r"^```.*?^```|`[^`\n]+`", "code", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def links(page):
    """Targets inside of the repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", without_code(page))
    return [unquote(target) for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(page):
    """Names that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in links(page):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file), target


NUMBER = re.compile(r"(?<![\w.])-?\d*\.\d+(?![\w.])")


def figures(text):
    """Decimal numbers, those in links and code left out."""
    return NUMBER.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text))


def passages(page):
    """Rows of tables, bullets and paragraphs; a row has the links of the paragraph before its table, too.

    Tables that benchmarks/page.py fills are left out: another test compares them with the results.
    """
    above = ""
    by_hand = re.sub(r"<!-- table: .*?<!-- end -->", "", without_code(page), flags=re.DOTALL)
    for passage in re.split(r"\n\s*\n|\n(?=- )", by_hand):
        if passage.lstrip().startswith("|"):
            yield from (above + row for row in passage.splitlines() if figures(row))
        else:
            above = "".join(f"[]({target})" for target in re.findall(r"\]\(([^)\s]+)\)", passage))
            yield passage


FIGURES = {README: [], DOCS / "advice.md": [], DOCS / "damaged-graphs.md": [], DOCS / "scale.md": ["performance.md"]}
"""Pages whose figures are compared, and pages that every passage takes figures from, beside those it links to."""


@pytest.mark.parametrize("page", FIGURES, ids=lambda page: page.name)
def test_figures_are_those_of_the_linked_results(page):
    checked = 0
    for passage in passages(page):
        names = FIGURES[page] + re.findall(r"\]\((?:docs/)?(results/[\w-]+\.md)\)", passage)
        linked = [DOCS / name for name in names]
        files = [file for path in linked for file in (path, path.with_suffix(".csv")) if file.is_file()]
        known = [float(number) for file in files for number in NUMBER.findall(file.read_text(encoding="utf-8"))]
        for shown in figures(passage) if linked else []:
            half = 0.5 * 10 ** -len(shown.partition(".")[2]) + 1e-9
            assert any(abs(abs(value) - abs(float(shown))) <= half for value in known), (shown, passage)
            checked += 1
    assert checked >= 10


def cells_of(line):
    """The cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.strip("| ").split("|")]


def test_the_table_of_accuracies_is_that_of_the_page():
    """reproduce.md has the lines of the preset `tuned`, with the columns of the paper's seven models."""
    text, accuracy = (DOCS / name for name in ("reproduce.md", "results/accuracy.md"))
    head, _, *rows = [line for line in text.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    names, *page = [cells_of(line) for line in accuracy.read_text().splitlines() if line.startswith("|")]
    places = [names.index(name) for name in cells_of(head)]
    assert len(rows) > 5
    for row in rows:
        assert cells_of(row) in [[cells[place] for place in places] for cells in page if cells[1] == "tuned"]


def test_the_page_of_settings_is_up_to_date():
    """If not: `python docs/write_settings.py`."""
    spec = importlib.util.spec_from_file_location("write_settings", DOCS / "write_settings.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PAGE.read_text(encoding="utf-8") == script.text()


@pytest.mark.slow
def test_the_pages_are_built_without_a_warning_and_need_no_network(tmp_path):
    for module in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(module, reason="the extra `docs` is not installed: pip install -e '.[docs]'")
    folders = map(str, (tmp_path / "trees", DOCS, tmp_path / "html"))
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-d", *folders]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    pages = list((tmp_path / "html").rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        html = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|link)[^>]*?(?:src|href)="([^"]+)"', html)
        assert not [target for target in loaded if re.match(r"(https?:)?//", target)], page.name
        for target in [*loaded, *re.findall(r'<a[^>]*?href="([^"]+)"', html)]:
            name = unquote(target.partition("#")[0].partition("?")[0])
            assert not name or re.match(r"[a-z]+:", name) or (page.parent / name).exists(), (page.name, target)
