"""Settings of Sphinx: `make docs` builds the pages into docs/_build, without a network."""

import re

from sphinx.application import Sphinx

from gumbel_mpnn import __version__

project = "gumbel-mpnn"
release = __version__
author = copyright = "the gumbel-mpnn developers"
html_theme = "furo"
html_title = f"gumbel-mpnn {release}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3  # the anchors that GitHub makes
default_role = "code"  # docstrings put code between single backticks, as in Markdown
autodoc_member_order = "bysource"


def without_links_to_the_repository(app: Sphinx, name: str, source: list[str]) -> None:
    """Leave the text of links to pages outside of docs, such as CHANGELOG.md, which are links on GitHub only."""
    source[0] = re.sub(r"\[([^]]+)\]\((?:\.\./)+[A-Z]+\.md[^)]*\)", r"\1", source[0])
    if name == "results/README":  # here, so that the page reads well on GitHub
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n*\n```\n"


def setup(app: Sphinx) -> None:
    """Connect what is changed in the sources."""
    app.connect("source-read", without_links_to_the_repository)
