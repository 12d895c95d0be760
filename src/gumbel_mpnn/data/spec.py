"""What is known about a benchmark before a file is opened: its counts, metric, splits, files and reader."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gumbel_mpnn._util.errors import unknown_name
from gumbel_mpnn.data.raw import RawGraph

Metric = Literal["accuracy", "roc_auc"]


@dataclass(frozen=True)
class File:
    """One file of a data set.

    Attributes:
        path: where it lies under a data root, with forward slashes.
        url: the public original; None where there is none in this form.
        sha256: of the public original, where it is known.
        member: the file's name inside the zip archive that `url` is; None if `url` is the file itself.
    """

    path: str
    url: str | None = None
    sha256: str | None = None
    member: str | None = None

    def matches(self, path: Path) -> bool:
        """Whether the file at `path` is the published one, as far as its checksum is known."""
        if self.sha256 is None:
            return True
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == self.sha256


@dataclass(frozen=True)
class Form:
    """One set of files a data set can be read from, and the function that reads their paths in that order."""

    files: tuple[File, ...]
    read: Callable[[Sequence[Path]], RawGraph]
    features: bool = True
    directed: bool = False


@dataclass(frozen=True)
class DatasetSpec:
    """A benchmark by name.

    Attributes:
        name: the name it is loaded by.
        metric: `accuracy` or `roc_auc`.
        protocols: names of the split protocols it takes, the default first.
        num_nodes: published count, checked on load; so are the next three.
        num_edges: undirected edges, each once, without self-loops.
        num_features: columns of `x`.
        num_classes: distinct labels.
        source: where the files come from.
        licence: of that source.
        forms: the files to read it from; the first is the plain one.
        split_files: the ten geom-gcn splits, where they are not in the graph's own files.
    """

    name: str
    metric: Metric
    protocols: tuple[str, ...]
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    source: str
    licence: str
    forms: tuple[Form, ...]
    split_files: tuple[File, ...] = ()

    @property
    def has_directions(self) -> bool:
        """Whether the direction of the edges is known, so that `load(..., directed=True)` can keep it."""
        return any(form.directed for form in self.forms)

    def protocol(self, name: str | None) -> str:
        """The protocol called `name`, or the default."""
        if name is None:
            return self.protocols[0]
        if name not in self.protocols:
            raise unknown_name(f"split protocol of {self.name!r}", name, self.protocols)
        return name

    def files_for(self, protocol: str, form: Form) -> tuple[File, ...]:
        """All files that reading `form` under `protocol` needs."""
        return form.files + (self.split_files if protocol == "geom-gcn" else ())
