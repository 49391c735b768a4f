"""Where the guest image is, and where its clean states are kept between processes."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "HYPERLIGHT_PYTHON_GUEST_PATH"
"""Environment variable that names another guest image than the packaged one."""

PACKAGED = Path(__file__).parent.parent / "guest" / "python-guest.bin"


def image_path() -> Path:
    """The guest image to boot: the one that the environment names, or the packaged one."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else PACKAGED


CACHE_VARIABLE = "WCPOD_SNAPSHOT_CACHE"
"""Environment variable that names another folder for clean states, or "off"."""


def snapshot_cache() -> Path | None:
    """The folder that keeps clean states between processes, or None when that is off or there is no home folder."""
    named = os.environ.get(CACHE_VARIABLE)
    if named == "off":
        return None
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path("~/.cache").expanduser()) / "wcpod" / "snapshots"
    except RuntimeError:  # a user without a name, as in a container, and no $HOME
        return None
