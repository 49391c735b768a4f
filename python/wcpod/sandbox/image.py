"""Where the guest image is."""

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
