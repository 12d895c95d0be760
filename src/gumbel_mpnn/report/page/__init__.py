"""One HTML file on runs that opens offline: how good they are, what they changed, and an explorer of the graph."""

from gumbel_mpnn.report.page.write import write_page

__all__ = ["write_page"]
