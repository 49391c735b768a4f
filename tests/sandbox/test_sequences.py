"""Random sequences of runs, stops, snapshots, forks and threads, in a short form; `make sequences` plays more."""

from __future__ import annotations

import pytest
from sequences import Sequence

pytestmark = pytest.mark.microvm

#: Seeds that are always played: the first ones, and each that has found something.
SEEDS = [1, 2, 3]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_sequence_reaches_into_what_follows(slowness: float, seed: int) -> None:
    counts = Sequence(seed, slowness).play(12)
    assert counts["probes"] > 12
