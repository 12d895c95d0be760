"""The index of the result pages."""

import re
from pathlib import Path

RESULTS = Path(__file__).parents[3] / "docs" / "results"


def test_every_page_is_listed_and_every_listed_page_is_there():
    listed = re.findall(r"^\| \[[\w-]+\]\(([\w-]+\.md)\)", (RESULTS / "README.md").read_text(encoding="utf-8"), re.M)
    assert sorted(listed) == sorted(path.name for path in RESULTS.glob("*.md") if path.name != "README.md")
