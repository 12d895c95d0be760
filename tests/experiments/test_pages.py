"""All pages: their parts fit together, those of this repository are made from their rows, and they are short."""

import ast
import re
from pathlib import Path

import pytest

from experiments import PAGES, Experiment
from experiments.experiment import LADDERS
from experiments.pages import NOTES, read_rows, write_page
from experiments.paper.accuracy import CONTROLS
from experiments.rows import MODEL_NAMES
from gumbel_mpnn.settings.registry import normal_name
from gumbel_mpnn.training import models

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
LINES, WORDS, NOTE_WORDS = 6_200, 1_200, 280


@pytest.mark.parametrize("page", PAGES.values(), ids=list(PAGES))
class TestEveryPage:
    def test_is_made_from_the_rows_beside_it(self, page, tmp_path):
        """Not by hand: the text is the same if it is made again."""
        name = f"{page.name}.md"
        for file in RESULTS.glob(f"{page.name}.*"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
        before = (tmp_path / name).read_text(encoding="utf-8")
        write_page(page, read_rows(tmp_path / f"{page.name}.csv"), tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == before

    def test_is_short(self, page):
        assert len((RESULTS / f"{page.name}.md").read_text(encoding="utf-8").split()) <= WORDS
        note = NOTES / f"{page.name}.md"
        assert not note.is_file() or len(note.read_text(encoding="utf-8").split()) <= NOTE_WORDS

    def test_names_models_as_people_do(self, page):
        text = (RESULTS / f"{page.name}.md").read_text(encoding="utf-8")
        assert not re.search(r"\| (gumbel-mpnn|drop-edge|jaccard|gnn-guard) \|", text)

    def test_headings_are_of_columns(self, page):
        if isinstance(page, Experiment):
            rows = page.collect(dict.fromkeys(page.plan()))
        else:
            rows = read_rows(RESULTS / f"{page.name}.csv")
        if rows:
            assert set(page.headings) <= set(rows[0])
            assert {tuple(row) for row in rows} == {tuple(rows[0])}

    def test_rows_can_be_shown_without_any_result(self, page):
        rows = page.collect(dict.fromkeys(page.plan())) if isinstance(page, Experiment) else []
        assert isinstance(page.shown(rows), str)
        assert not page.draw(rows, {}, [])


def test_every_page_is_in_the_index_and_every_page_has_a_table():
    listed = re.findall(r"\]\(([\w-]+)\.md\)", (RESULTS / "README.md").read_text(encoding="utf-8"))
    pages = {file.stem for file in RESULTS.glob("*.md")} - {"README"}
    assert set(listed) == pages
    assert set(PAGES) == pages - {"sdrf"}  # of a benchmark
    assert {file.stem for file in NOTES.glob("*.md")} <= set(PAGES)


def test_every_model_has_a_name_and_the_command_takes_either():
    used = {job.model for page in PAGES.values() if isinstance(page, Experiment) for job in page.plan()}
    assert set(MODEL_NAMES) == used >= {*CONTROLS}
    assert {normal_name(name) for name in MODEL_NAMES.values()} & set(LADDERS) == used & set(LADDERS)
    single = {name for name in MODEL_NAMES.values() if normal_name(name) not in LADDERS}
    assert {models.canonical(name) for name in single} == used - set(LADDERS)


def test_what_is_taken_from_models_has_a_name_and_a_method():
    names = []
    for page in PAGES.values():
        if isinstance(page, Experiment):
            assert bool(page.measured) == (type(page).measure is not Experiment.measure)
            names += [page.measured] if page.measured else []
    assert len(set(names)) == len(names) > 1


SOURCES = sorted((ROOT / "experiments").rglob("*.py"))


@pytest.mark.parametrize("source", SOURCES, ids=[str(file.relative_to(ROOT)) for file in SOURCES])
def test_the_library_is_used_by_its_public_face_alone(source):
    """As a plugin does: the package, or names that a room lists in its `__all__`."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert all(not name.name.startswith("gumbel_mpnn.") for name in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gumbel_mpnn"):
            assert node.module.count(".") <= 1, node.module
            room = __import__(node.module, fromlist=["__all__"])
            assert {name.name for name in node.names} <= set(room.__all__), node.module


def test_the_experiments_stay_small():
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in SOURCES) <= LINES
