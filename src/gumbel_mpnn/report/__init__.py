"""Tables, charts and figures.

Only the tables are imported here, because several commands print one and should not wait for torch or Matplotlib.
"""

from gumbel_mpnn.report.table import FORMATS, Format, Row, Table, choice_table, run_table

__all__ = ["FORMATS", "Format", "Row", "Table", "choice_table", "run_table"]
