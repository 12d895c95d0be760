"""A small reader of LaTeX tables: what a table holds if TeX would take it, an AssertionError otherwise."""

import re

ATOM = re.compile(
    r"\\(?:textbackslash|textasciitilde|textasciicircum|textbar|textendash|textless|textgreater|ldots)\{\}"
    r"|\\[&%#_${}]"
    r"|\$(?:\\pm|\\tau|-)\$"
    r"|\{[\[*]\}"
    r"|-\{\}"
    r"|[^\\{}$&%#_^~\n\r]"
)
BEGIN, END = re.compile(r"\\begin\{tabular\}\{([lr]*)\}"), r"\end{tabular}"


def read_table(text: str) -> list[list[str]]:
    """The cells of a booktabs table as they stand there, its heads first.

    Asserted are the frame, that a row is a line and has as many cells as the frame has columns, and that a cell is made
    of plain characters and known commands alone, so that braces are balanced and nothing special is left unescaped.
    """
    begin, top, *lines = text.split("\n")
    columns = BEGIN.fullmatch(begin)
    assert columns is not None
    assert (top, lines[1], lines[-2], lines[-1]) == (r"\toprule", r"\midrule", r"\bottomrule", END)
    rows = [read_row(line) for line in [lines[0], *lines[2:-2]]]
    assert {len(row) for row in rows} == {len(columns[1])}
    return rows


def read_row(line: str) -> list[str]:
    """The cells of one line."""
    assert line.endswith(r" \\")
    assert not re.match(r"\s*[\[*]", line), "read as an option of the line before"
    cells = re.split(r"(?<!\\) & ", line.removesuffix(r" \\"))
    for cell in cells:
        assert "".join(match[0] for match in ATOM.finditer(cell)) == cell
        assert "--" not in cell, "read as a dash"
    return cells
