"""Tables, figures and pages."""

from gumbel_mpnn.report.chart import draw_charts
from gumbel_mpnn.report.demo_figure import demo_figure
from gumbel_mpnn.report.document import document, rows_table, write_page
from gumbel_mpnn.report.grid import grid_table
from gumbel_mpnn.report.run_table import run_table
from gumbel_mpnn.report.table import FORMATS, Format, Table

__all__ = [
    "FORMATS",
    "Format",
    "Table",
    "demo_figure",
    "document",
    "draw_charts",
    "grid_table",
    "rows_table",
    "run_table",
    "write_page",
]
