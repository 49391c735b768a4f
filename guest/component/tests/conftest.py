"""Tests of what builds the guest's Python, and of what of it runs in any Python."""

import sys
from pathlib import Path

COMPONENT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(COMPONENT), str(COMPONENT / "wcpod_guest")]
