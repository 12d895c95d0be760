"""Tables and figures.

Nothing here imports torch or Matplotlib before it is needed, because several commands only print a table.
"""

from gumbel_mpnn.report.style import MODEL_NAMES, PALETTE, saved_figure
from gumbel_mpnn.report.table import FORMATS, Cell, Fixed, Format, Markdown, Row, Table, choice_table, run_table

__all__ = [
    "FORMATS",
    "MODEL_NAMES",
    "PALETTE",
    "Cell",
    "Fixed",
    "Format",
    "Markdown",
    "Row",
    "Table",
    "choice_table",
    "run_table",
    "saved_figure",
]
