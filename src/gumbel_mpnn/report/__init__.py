"""Tables, figures and pages of runs."""

from gumbel_mpnn.report.style import MODEL_NAMES, PALETTE, saved_figure
from gumbel_mpnn.report.table import Cell, Markdown, Row, Table, choice_table, run_table

__all__ = ["MODEL_NAMES", "PALETTE", "Cell", "Markdown", "Row", "Table", "choice_table", "run_table", "saved_figure"]
