"""Specifications of data sets: counts, metric, split protocols, and the files or function they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from torch_geometric.data import Data

from gumbel_mpnn._util.errors import unknown_name
from gumbel_mpnn.data.raw import RawGraph
from gumbel_mpnn.data.splits import FINAL_PROTOCOLS

Metric = Literal["accuracy", "roc_auc"]
Counts = tuple[int, int, int, int]
"""Number of nodes, edges, features and classes."""


@dataclass(frozen=True)
class File:
    """One file of a data set."""

    path: str
    """Path relative to a data root, with forward slashes."""
    url: str | None = None
    """Address of the public original; None if it is not published in this form."""
    sha256: str | None = None
    """Checksum of the public original, if known."""
    member: str | None = None
    """Name of the file inside the zip archive at `url`; None if `url` is the file itself."""

    def matches(self, path: Path) -> bool:
        """Whether the file at `path` has the published checksum; true if no checksum is known."""
        if self.sha256 is None:
            return True
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == self.sha256


@dataclass(frozen=True)
class Form:
    """A set of files that a data set can be read from, and the function that takes their paths in this order."""

    files: tuple[File, ...]
    read: Callable[[Sequence[Path]], RawGraph]
    features: bool = True
    directed: bool = False


@dataclass(frozen=True)
class Spec:
    """What is known about a data set before it is loaded."""

    name: str
    """Name in records and presets; the sizes of a generated task share it."""
    metric: Metric
    protocols: tuple[str, ...]
    """Names of the supported split protocols, the default first."""
    num_nodes: int
    num_edges: int
    """Number of undirected edges, each counted once, without self-loops."""
    num_features: int
    num_classes: int
    source: str
    licence: str
    attacks: tuple[str, ...] = field(default=(), kw_only=True)
    """Names of the attacks whose poisoned edges come with it."""

    def protocol(self, name: str | None) -> str:
        """Return the protocol called `name`, or the default protocol if it is None; `final` and `all` are for all."""
        if name is None:
            return self.protocols[0]
        if name not in self.protocols and name not in FINAL_PROTOCOLS:
            raise unknown_name(f"split protocol of {self.name!r}", name, [*self.protocols, *FINAL_PROTOCOLS])
        return name


@dataclass(frozen=True)
class DatasetSpec(Spec):
    """A data set that is read from files; its counts are checked when it is loaded."""

    forms: tuple[Form, ...]
    """Sets of files it can be read from, the default first."""
    split_files: tuple[File, ...] = ()
    """The ten geom-gcn splits, if they are not part of the graph's own files."""

    @property
    def has_directions(self) -> bool:
        """Whether the direction of the edges is known, so that `load(..., directed=True)` can keep it."""
        return any(form.directed for form in self.forms)

    def files_for(self, protocol: str, form: Form) -> tuple[File, ...]:
        """Return all files needed to read `form` under `protocol`."""
        return form.files + (self.split_files if protocol == "geom-gcn" else ())


@dataclass(frozen=True)
class GeneratedSpec(Spec):
    """A data set that is generated and needs no files."""

    make: Callable[[], Data]
    """Generates the graph with the splits of its default protocol."""
    has_directions: bool = False
    """Whether its edges have a direction, which `load` always keeps."""


AnySpec = DatasetSpec | GeneratedSpec
