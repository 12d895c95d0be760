"""Tables, figures and pages.

Only the table is at hand here: the quick verbs of the command print one and do not wait for what the others import.
"""

from gumbel_mpnn.report.table import FORMATS, Format, Table

__all__ = ["FORMATS", "Format", "Table"]
