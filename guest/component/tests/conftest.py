"""Tests of what builds the guest's Python, and of what of it runs in any Python."""

import sys
from pathlib import Path
from types import ModuleType

COMPONENT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(COMPONENT))

# The package without its `__init__`, which only a component that is being built can run.
PACKAGE = ModuleType("wcpod_guest")
PACKAGE.__path__ = [str(COMPONENT / "wcpod_guest")]
sys.modules["wcpod_guest"] = PACKAGE
