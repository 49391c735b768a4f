import struct
from pathlib import Path

from archive import PAGE, pack


def unpack(data: bytes) -> dict[str, bytes | None]:
    """Every path of an archive, with its content, or None for a folder."""
    assert data[:8] == b"WCPODFS1"
    count, names_length = struct.unpack_from("<II", data, 8)
    nodes = [struct.unpack_from("<IHHII", data, 16 + 16 * index) for index in range(count)]
    names_start = 16 + 16 * count
    names = data[names_start : names_start + names_length]
    start = -(-(names_start + names_length) // PAGE) * PAGE
    found: dict[str, bytes | None] = {}

    def visit(index: int, path: str) -> None:
        _, _, kind, first, length = nodes[index]
        if kind == 1:
            found[path] = data[start + first : start + first + length]
            return
        found[path] = None
        children = [names[name : name + size] for name, size, *_ in nodes[first : first + length]]
        assert children == sorted(children)
        for child, name in enumerate(children, first):
            assert child > index
            visit(child, f"{path}/{name.decode()}")

    visit(0, "")
    return found


def test_an_archive_holds_the_folder(tmp_path: Path) -> None:
    (tmp_path / "lib" / "json").mkdir(parents=True)
    (tmp_path / "lib" / "empty").mkdir()
    (tmp_path / "lib" / "json" / "__init__.py").write_bytes(b"# json")
    (tmp_path / "lib" / "a.py").write_bytes(b"")
    (tmp_path / "lib" / "é.py").write_bytes(b"x" * 5000)
    assert unpack(pack(tmp_path)) == {
        "": None,
        "/lib": None,
        "/lib/a.py": b"",
        "/lib/empty": None,
        "/lib/json": None,
        "/lib/json/__init__.py": b"# json",
        "/lib/é.py": b"x" * 5000,
    }


def test_compiled_code_comes_first(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"SOURCE")
    (tmp_path / "z.pyc").write_bytes(b"COMPILED")
    data = pack(tmp_path)
    assert data[PAGE:] == b"COMPILEDSOURCE"
