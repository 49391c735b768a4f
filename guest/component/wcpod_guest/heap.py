"""Leaves the C library's heap without holes.

CPython for WASI has no allocator of its own, and the build leaves thousands of free pieces all over
the heap. A run that allocates from them dirties a page for each. With the holes filled, all that a
run allocates lies side by side at the end of the heap.
"""

#: Free at the end of the heap, so that a small run does not make the memory grow. More than any hole.
SLACK = 4 << 20

#: What a `bytes` object needs beside its content, and the steps in which pieces come.
_HEADER = 17
_STEP = 16
_LARGEST = 1 << 20

_kept: list[object] = []


def fill_holes() -> None:
    """Allocates every free piece below the end of the heap, largest first."""
    end = id(bytes(SLACK))
    size = _LARGEST
    while size > 4096:
        _fill(size, end)
        size //= 2
    for size in range(4096 - 4, _STEP, -_STEP):
        _fill(size - _HEADER, end)
    while id(piece := object()) < end:
        _kept.append(piece)


def _fill(size: int, end: int) -> None:
    while id(piece := bytes(size)) < end:
        _kept.append(piece)
