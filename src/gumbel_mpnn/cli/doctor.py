"""`gumbel-mpnn doctor`: versions, devices and folders, for bug reports."""

from __future__ import annotations

from gumbel_mpnn.cli import common

PACKAGES = "torch torch-geometric numpy scipy numba pandas scikit-learn matplotlib safetensors"


@common.in_one_sentence
def doctor(format: common.FormatOption = common.OutputFormat.text) -> None:
    """Show versions, devices and folders."""
    import os
    import platform
    from importlib import metadata

    import torch

    from gumbel_mpnn._version import __version__
    from gumbel_mpnn.report import Table
    from gumbel_mpnn.util.files import cache_root

    found = {
        "gumbel-mpnn": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu threads": str(torch.get_num_threads()),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "GUMBEL_MPNN_DATA": os.environ.get("GUMBEL_MPNN_DATA", "not set"),
        "GUMBEL_MPNN_PLUGINS": os.environ.get("GUMBEL_MPNN_PLUGINS", "not set"),
        "cache folder": str(cache_root()),
        **{package: metadata.version(package) for package in PACKAGES.split()},
    }
    common.emit(Table(["what", "found"], list(found.items())), format)
