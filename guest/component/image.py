"""Two changes to the component that componentize-py made, in its bytes.

1. `pin`: every object that the interpreter has when it is kept becomes immortal, as CPython's own
   constants are. A run then reads those objects without counting references in them, and dirties
   far fewer pages. The guest's Python lists its objects (`wcpod_guest/census.py`), the component
   holds its memory as data segments at fixed addresses, so this sets one word of each.
2. `count_stack`: `_Py_Dealloc` takes some of the stack that CPython measures. WebAssembly calls
   leave that stack alone, so CPython does not notice how deep it is in freeing a chain of a million
   objects, and its own remedy (to put the rest off) never begins.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator

_CORE_MODULE = 1
_IMPORTS, _FUNCTIONS, _EXPORTS, _CODE, _DATA = 2, 3, 7, 10, 11
_FUNCTION, _GLOBAL = 0, 3

#: What CPython gives its immortal objects on 32-bit machines (_Py_IMMORTAL_INITIAL_REFCNT).
IMMORTAL = 5 << 28
#: More references than a live object can have here. What was freed has an address or 0 in this place.
_COUNTED = 1 << 20

#: Bytes of stack that one nested call of `_Py_Dealloc` is to count for.
_FRAME = 64


def pin(component: bytearray, objects: bytes) -> int:
    """Makes the listed objects immortal, and says how many they are.

    `objects` has two little-endian words for each: its address and that of its type. An object that
    was freed after it was listed has lost its reference count, and is left alone.
    """
    starts, ends, places = [], [], []
    for address, place, length in _segments(component):
        starts.append(address)
        ends.append(address + length)
        places.append(place)
    pinned = 0
    for address, kind in struct.iter_unpack("<II", objects):
        index = bisect_right(starts, address) - 1
        if index < 0 or address + 8 > ends[index]:
            continue
        place = places[index] + address - starts[index]
        count, found = struct.unpack_from("<II", component, place)
        if found == kind and 0 < count < _COUNTED:
            struct.pack_into("<I", component, place, IMMORTAL)
            pinned += 1
    return pinned


def count_stack(component: bytes) -> bytes:
    """Wraps `_Py_Dealloc` into a function that moves the stack pointer."""
    result = bytearray(component[:8])
    wrapped = 0
    for kind, start, end in _sections(component, 8, len(component)):
        content = component[start:end]
        if kind == _CORE_MODULE and b"_Py_Dealloc" in content:
            changed = _with_wrapper(content)
            if changed is not None:
                content = changed
                wrapped += 1
        result += bytes([kind]) + _unsigned(len(content)) + content
    if wrapped != 1:
        raise ValueError(f"the component has {wrapped} modules that define _Py_Dealloc, not one")
    return bytes(result)


def _with_wrapper(module: bytes) -> bytes | None:
    sections = {kind: module[start:end] for kind, start, end in _sections(module, 8, len(module)) if kind}
    if _CODE not in sections:
        return None
    function = _exported(sections[_EXPORTS], b"_Py_Dealloc")
    imported, stack_pointer = _imports(sections[_IMPORTS])
    if function is None or function < imported or stack_pointer is None:
        return None
    types = list(_vector_of_indices(sections[_FUNCTIONS]))
    bodies = list(_bodies(sections[_CODE]))
    index = function - imported
    get, put = bytes([0x23]) + _unsigned(stack_pointer), bytes([0x24]) + _unsigned(stack_pointer)
    frame = b"\x41" + _signed(_FRAME)
    wrapper = b"".join(
        (
            b"\x00",  # no locals
            get, frame, b"\x6b", put,  # stack_pointer -= frame
            b"\x20\x00\x10", _unsigned(imported + len(bodies)),  # call the wrapped function with the object
            get, frame, b"\x6a", put,  # stack_pointer += frame
            b"\x0b",
        )
    )  # fmt: skip
    bodies.append(bodies[index])
    bodies[index] = wrapper
    types.append(types[index])
    changed = {
        _FUNCTIONS: _unsigned(len(types)) + b"".join(_unsigned(entry) for entry in types),
        _CODE: _unsigned(len(bodies)) + b"".join(_unsigned(len(body)) + body for body in bodies),
    }
    result = bytearray(module[:8])
    for kind, start, end in _sections(module, 8, len(module)):
        content = changed.get(kind, module[start:end])
        result += bytes([kind]) + _unsigned(len(content)) + content
    return bytes(result)


def _segments(component: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
    """Address, position in the file and length of each piece of the initial memory, in order of the addresses."""
    found = []
    for kind, start, end in _sections(component, 8, len(component)):
        if kind != _CORE_MODULE:
            continue
        for inner, at, _ in _sections(component, start + 8, end):
            if inner != _DATA:
                continue
            count, at = _read(component, at)
            for _ in range(count):
                mode, at = _read(component, at)
                if mode != 0 or component[at] != 0x41:
                    raise ValueError("a data segment that is not at a fixed address")
                address, at = _read_signed(component, at + 1)
                length, at = _read(component, at + 1)
                found.append((address, at, length))
                at += length
    return iter(sorted(found))


def _sections(data: bytes | bytearray, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    while at < end:
        kind = data[at]
        length, at = _read(data, at + 1)
        yield kind, at, at + length
        at += length


def _exported(section: bytes, wanted: bytes) -> int | None:
    count, at = _read(section, 0)
    for _ in range(count):
        length, at = _read(section, at)
        name, at = section[at : at + length], at + length
        kind = section[at]
        index, at = _read(section, at + 1)
        if name == wanted and kind == _FUNCTION:
            return index
    return None


def _imports(section: bytes) -> tuple[int, int | None]:
    """How many functions are imported, and which global is the stack pointer."""
    functions = globals_ = 0
    stack_pointer = None
    count, at = _read(section, 0)
    for _ in range(count):
        names = []
        for _ in range(2):
            length, at = _read(section, at)
            names.append(section[at : at + length])
            at += length
        kind, at = section[at], at + 1
        if kind == _FUNCTION:
            functions += 1
            _, at = _read(section, at)
        elif kind == _GLOBAL:
            if names == [b"env", b"__stack_pointer"]:
                stack_pointer = globals_
            globals_ += 1
            at += 2
        else:
            if kind == 1:  # a table has the type of its elements first
                at += 1
            flags, at = _read(section, at)
            for _ in range(2 if flags & 1 else 1):
                _, at = _read(section, at)
    return functions, stack_pointer


def _vector_of_indices(section: bytes) -> Iterator[int]:
    count, at = _read(section, 0)
    for _ in range(count):
        index, at = _read(section, at)
        yield index


def _bodies(section: bytes) -> Iterator[bytes]:
    count, at = _read(section, 0)
    for _ in range(count):
        length, at = _read(section, at)
        yield section[at : at + length]
        at += length


def _read(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _read_signed(data: bytes | bytearray, at: int) -> tuple[int, int]:
    value, end = _read(data, at)
    bits = 7 * (end - at)
    return (value - (1 << bits) if value >> (bits - 1) else value), end


def _unsigned(value: int) -> bytes:
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def _signed(value: int) -> bytes:
    """A positive number as signed LEB128: bit 6 of the last byte is the sign."""
    result = bytearray()
    while value > 0x3F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)
