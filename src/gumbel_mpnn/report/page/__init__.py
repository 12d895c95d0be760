"""One HTML file on runs that opens offline: how good they are, what they changed, and an explorer of the graph.

The file is a template, a style sheet, a script and D3, with the content as JSON. The browser shows names of the user as
text only, and a content security policy forbids every request and every script but the two of the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from gumbel_mpnn.report.page.content import page_content
from gumbel_mpnn.runs.run import Run
from gumbel_mpnn.util.errors import UserError
from gumbel_mpnn.util.files import is_stream, suffix_of, write_atomically

__all__ = ["write_page"]


def write_page(runs: Sequence[Run], path: str | Path, around: Sequence[str] = ()) -> None:
    """Write a page on runs, side by side, that opens offline.

    Args:
        runs: Finished runs, of one or several settings.
        path: File to write, which ends in .html.
        around: Ids or numbers of nodes whose surroundings the explorer must show. The explorer of a large graph shows
            the surroundings of some nodes only.
    """
    path = Path(path)
    if not is_stream(path) and (suffix_of(path) not in (".html", ".htm") or path.is_dir()):
        raise UserError(f"cannot write {path}: the page is HTML, so give the name of a file that ends in .html")
    if not runs:
        raise UserError("a page needs at least one run")
    write_atomically(path, _page_of(page_content(runs, around)).encode())


def _page_of(content: dict[str, Any]) -> str:
    assets = files("gumbel_mpnn.report.page") / "assets"
    template, style, library, licence, script = (
        (assets / name).read_text(encoding="utf-8")
        for name in ("page.html", "page.css", "d3.min.js", "d3-LICENSE.txt", "page.js")
    )
    library = f"/*\n{licence}*/\n{library}"
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(library)} {_digest(script)};"
        " base-uri 'none'; form-action 'none'"
    )
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    parts = {
        "title": escape(content["title"]),
        "policy": policy,
        "style": style,
        "library": library,
        "script": script,
        "content": text.replace("<", "\\u003c"),  # else a name could end the script element
    }
    return re.sub(r"\{\{ (\w+) \}\}", lambda place: parts[place[1]], template)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
