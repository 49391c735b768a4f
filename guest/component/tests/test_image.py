import struct

import pytest

import image


def section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + image._unsigned(len(content)) + content


def name(text: str) -> bytes:
    return image._unsigned(len(text)) + text.encode()


def module(*sections: bytes) -> bytes:
    return b"\0asm\1\0\0\0" + b"".join(sections)


def component(*modules: bytes) -> bytes:
    return b"\0asm\x0d\0\1\0" + b"".join(section(1, one) for one in modules)


def memory(*segments: tuple[int, bytes]) -> bytes:
    pieces = [b"\0\x41" + image._signed(at) + b"\x0b" + image._unsigned(len(data)) + data for at, data in segments]
    return module(section(11, image._unsigned(len(pieces)) + b"".join(pieces)))


def test_pins_what_is_still_an_object() -> None:
    objects = struct.pack("<8I", 3, 0x500, 0, 0x500, 0x120000, 0x500, 2, 0x600)
    data = bytearray(component(memory((0x2000, objects), (0x100, b"other"))))
    listed = struct.pack("<10I", 0x2000, 0x500, 0x2008, 0x500, 0x2010, 0x500, 0x2018, 0x500, 0x9000, 0x500)
    assert image.pin(data, listed) == 1
    counts = struct.unpack_from("<8I", data, data.index(struct.pack("<I", image.IMMORTAL)))[::2]
    assert counts == (image.IMMORTAL, 0, 0x120000, 2)


def test_wraps_the_function_that_frees() -> None:
    library = module(
        section(1, b"\1\x60\1\x7f\0"),
        section(2, b"\1" + name("env") + name("__stack_pointer") + b"\3\x7f\1"),
        section(3, b"\2\0\0"),
        section(7, b"\1" + name("_Py_Dealloc") + b"\0\1"),
        section(10, b"\2" + b"\2\0\x0b" + b"\4\0\x20\0\x0b"),
    )
    changed = image.count_stack(component(module(), library))
    [*_, (kind, start, end)] = image._sections(changed, 8, len(changed))
    assert kind == 1
    parts = {kind: changed[at:to] for kind, at, to in image._sections(changed, start + 8, end)}
    assert parts[3] == b"\3\0\0\0"
    first, wrapper, wrapped = image._bodies(parts[10])
    assert (first, wrapped) == (b"\0\x0b", b"\0\x20\0\x0b")
    move = "2300 41c000 {} 2400"
    assert wrapper == bytes.fromhex("00" + move.format("6b") + "2000 1002" + move.format("6a") + "0b")


def test_says_when_there_is_nothing_to_wrap() -> None:
    with pytest.raises(ValueError, match=r"^the component has 0 modules that define _Py_Dealloc, not one$"):
        image.count_stack(component(module()))


@pytest.mark.parametrize("value", [0, 1, 63, 64, 127, 128, 987216, 2**31 - 1])
def test_numbers_survive(value: int) -> None:
    assert image._read(image._unsigned(value) + b"\xff", 0) == (value, len(image._unsigned(value)))
    assert image._read_signed(image._signed(value) + b"\xff", 0) == (value, len(image._signed(value)))
