"""Finding the files of a data set in the data folders, and downloading missing ones."""

from __future__ import annotations

import http.client
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gumbel_mpnn._util.errors import DataError, MissingDataError, UserError
from gumbel_mpnn._util.files import cache_root
from gumbel_mpnn.data.download import Progress, download
from gumbel_mpnn.data.spec import AnySpec, File, GeneratedSpec

ENVIRONMENT_VARIABLE = "GUMBEL_MPNN_DATA"


@dataclass(frozen=True)
class Presence:
    """Which files of a data set are present on this machine."""

    found: dict[str, Path]
    """Maps the path relative to the data root to the path of the file."""
    missing: tuple[File, ...]
    folder: Path
    """Folder in which the user can put missing files."""
    without_features: bool
    """Whether the files needed for `load(..., features=False)` are present."""

    @property
    def complete(self) -> bool:
        """Whether all files are present."""
        return not self.missing

    @property
    def downloadable(self) -> bool:
        """Whether every missing file has a public original."""
        return all(file.url for file in self.missing)


def search_roots(root: str | Path | None = None) -> list[Path]:
    """Return the folders to search, in order: `root`, the one named by GUMBEL_MPNN_DATA, the cache."""
    if root and not Path(root).expanduser().is_dir():
        raise UserError(f"there is no folder {root}, in which data files are searched: correct --data-root (root=)")
    named = (root, os.environ.get(ENVIRONMENT_VARIABLE))
    return [*(Path(folder).expanduser() for folder in named if folder), cache_root()]


def find(file: File, root: str | Path | None = None) -> Path | None:
    """Return the path of the file, or None if it was not found."""
    return next((folder / file.path for folder in search_roots(root) if (folder / file.path).is_file()), None)


def all_found(files: Sequence[File], root: str | Path | None = None) -> bool:
    """Whether all of the files are present."""
    return all(find(file, root) for file in files)


def locate(spec: AnySpec, root: str | Path | None = None) -> Presence:
    """Find out which files of a data set are present and which are missing; a generated one needs none."""
    if isinstance(spec, GeneratedSpec):
        return Presence({}, (), search_roots(root)[0], without_features=True)
    files = spec.files_for(spec.protocols[0], spec.forms[0])
    paths = {file.path: find(file, root) for file in files}
    return Presence(
        found={name: path for name, path in paths.items() if path is not None},
        missing=tuple(file for file in files if paths[file.path] is None),
        folder=search_roots(root)[0],
        without_features=any(all_found(form.files, root) for form in spec.forms if not form.features),
    )


def obtain(
    name: str, files: Sequence[File], root: str | Path | None = None, progress: Progress | None = None
) -> list[Path]:
    """Return the paths of files, after downloading missing ones and verifying checksums.

    `progress` is called during a download with the number of bytes done and the number expected, or None if unknown.
    """
    missing = [file for file in files if find(file, root) is None]
    if missing:
        reason = ""
        try:
            if all(file.url for file in missing):
                download(missing, cache_root(), progress)
        except (OSError, http.client.HTTPException) as error:
            reason = f" and could not be downloaded ({error})"
        missing = [file for file in missing if find(file, root) is None]
    if missing:
        raise MissingDataError(
            f"data set {name!r} lacks {', '.join(file.path for file in missing)}, found under none of "
            f"{', '.join(map(str, search_roots(root)))}{reason}: put {'it' if len(missing) == 1 else 'them'} "
            f"in {search_roots(root)[0]} under {'that name' if len(missing) == 1 else 'those names'}"
        )
    return [_verified(file, root) for file in files]


def _verified(file: File, root: str | Path | None) -> Path:
    path = find(file, root)
    if path is None:
        raise MissingDataError(f"{file.path} disappeared while it was being read: load the data set again")
    try:
        genuine = file.matches(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check its permissions") from error
    if not genuine:
        raise DataError(
            f"{path} is not the published file (its sha256 differs), so it is truncated or altered: delete it"
        )
    return path
