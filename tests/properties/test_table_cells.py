"""Whatever stands in a table, every format of it can be read again."""

import csv
import io
import json
import re

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gumbel_mpnn.report import Table

ODD = st.text(alphabet="ab &%#_${}[]*\\|~^<>-–−±τ…\"'`,;\n\r\t\x00\x85\u2028", max_size=8)
WORDS = ODD | st.text(max_size=6)
NUMBERS = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6)


CELLS = WORDS | NUMBERS | st.none()


@st.composite
def tables(draw):
    """One to four columns with headings, up to four rows."""
    width = draw(st.integers(1, 4))
    columns = [f"column{k}" for k in range(width)]
    headings = {column: draw(WORDS) for column in columns}
    rows = draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=4))
    return Table(columns, rows, headings)


@given(tables())
def test_latex_has_a_line_for_each_row_and_a_cell_for_each_column(table):
    begin, top, *lines, bottom, end = table.render("latex").split("\n")
    assert (top, bottom, end) == (r"\toprule", r"\bottomrule", r"\end{tabular}")
    assert re.fullmatch(rf"\\begin\{{tabular\}}\{{[lr]{{{len(table.columns)}}}\}}", begin)
    rows = [line for line in lines if line != r"\midrule"]
    assert len(rows) == 1 + len(table.rows)
    for row in rows:
        assert len(re.findall(r"(?<!\\)&", row)) == len(table.columns) - 1
        assert not re.search(r"(?<!\\)[#%_$]", row)


@given(tables())
def test_markdown_has_a_line_for_each_row_and_a_cell_for_each_column(table):
    lines = table.render("markdown").split("\n")
    assert len(lines) == 2 + len(table.rows)
    for line in lines:
        assert len(line.splitlines()) == 1
        bars = re.sub(r"\\[\\|]", "", line).count("|")  # as GitHub reads it: a backslash escapes bars and backslashes
        assert bars == len(table.columns) + 1


@given(st.lists(WORDS, min_size=1, max_size=4))
@example(["*a*", "__b__", "`c`", "~~d~~", "<b>", "&lt;", "[e](f)", "a_b_c", "\\|", "$x$"])
def test_markdown_says_what_the_cells_say(words):
    page = Table([f"c{k}" for k in range(len(words))], [words]).render("markdown")
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page)
    cells = [token.children for token in tokens if token.type == "inline"][len(words) :]
    for word, shown in zip(words, cells, strict=True):
        assert all(part.type in ("text", "text_special") for part in shown)
        plain = re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", " ".join(word.splitlines()))
        assert "".join(part.content for part in shown).split() == plain.split()


@given(tables())
def test_csv_is_read_again(table):
    names, *rows = csv.reader(io.StringIO(table.render("csv") + "\n", newline=""))
    assert names == table.columns
    for read, row in zip(rows, table.rows, strict=True):
        for text, cell in zip(read, row, strict=True):
            assert (float(text) if isinstance(cell, float) else text) == (
                "" if cell is None else cell if isinstance(cell, float) else str(cell)
            )


@given(tables())
def test_json_is_read_again(table):
    assert [list(row.values()) for row in json.loads(table.render("json"))] == table.rows
