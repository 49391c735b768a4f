"""The shim's decoder of privileged instructions, compiled for this machine, against those that an assembler made."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

SHIM = Path(__file__).resolve().parent.parent
REGISTERS = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{number}" for number in range(8, 16)))
# struct trap_frame of guest/shim/machine.h
PUSHED = (*(f"r{number}" for number in range(15, 7, -1)), "rbp", "rdi", "rsi", "rdx", "rcx", "rbx", "rax")
FRAME = (*PUSHED, "error", "rip", "cs", "rflags", "rsp", "ss")
NOT_OURS, READ_CR0, READ_CR3, WRITE_CR0, INVALIDATE = range(5)

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (cc)")


class Instruction(ctypes.Structure):
    _fields_ = (("what", ctypes.c_int), ("reg", ctypes.c_int), ("length", ctypes.c_int))


class Frame(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in FRAME)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    result = tmp_path_factory.mktemp("shim") / "decode.so"
    strict = ["-Wall", "-Wextra", "-Werror", "-O2", "-fno-jump-tables"]
    subprocess.run(["cc", *strict, "-shared", "-fPIC", "-o", str(result), str(SHIM / "decode.c")], check=True)
    library = ctypes.CDLL(str(result))
    library.decode_privileged.restype = Instruction
    library.register_of.restype = ctypes.c_void_p
    return library


def assembled(folder: Path, lines: list[str]) -> list[bytes]:
    """The machine code of each line."""
    source, code = folder / "lines.s", folder / "lines"
    source.write_text(".intel_syntax noprefix\n" + "".join(f"{line}\n.balign 16, 0xcc\n" for line in lines))
    subprocess.run(["cc", "-c", "-o", f"{code}.o", str(source)], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", f"{code}.o", str(code)], check=True)
    data = code.read_bytes()
    return [data[at : at + 16].rstrip(b"\xcc") for at in range(0, len(data), 16)]


def decoded(shim: ctypes.CDLL, code: bytes) -> tuple[int, str, int]:
    found = shim.decode_privileged(code.ljust(16, b"\xcc"))
    return found.what, REGISTERS[found.reg], found.length


def test_what_hyperlight_does_is_known_with_every_register(shim: ctypes.CDLL, tmp_path: Path) -> None:
    wanted = []
    for name in REGISTERS:
        wanted += [(f"mov {name}, cr0", READ_CR0, name), (f"mov {name}, cr3", READ_CR3, name)]
        wanted.append((f"mov cr0, {name}", WRITE_CR0, name))
        if name not in {"rsp", "rbp", "r12", "r13"}:  # these take more bytes than a register's number
            wanted.append((f"invlpg [{name}]", INVALIDATE, name))
    codes = assembled(tmp_path, [line for line, *_ in wanted])
    assert len(codes) == len(wanted) == 60
    for (line, what, name), code in zip(wanted, codes, strict=True):
        assert decoded(shim, code) == (what, name, len(code)), line


def test_everything_else_is_left_to_wasmtime(shim: ctypes.CDLL, tmp_path: Path) -> None:
    lines = ["mov rax, cr2", "mov rax, cr4", "mov cr3, rax", "mov cr4, rbx", "mov rax, cr8", "mov cr8, rax", "hlt"]
    lines += ["invlpg [rsp]", "invlpg [rbp]", "invlpg [rip]", "invlpg [rax + 8]", "invlpg [r12]", "invlpg [rax + rbx]"]
    lines += ["mov rax, dr0", "lgdt [rax]", "lidt [rax]", "swapgs", "ud2", "nop", "out dx, eax", "rdtsc", "wrmsr"]
    for line, code in zip(lines, assembled(tmp_path, lines), strict=True):
        assert decoded(shim, code)[0] == NOT_OURS, line


def test_registers_are_found_in_the_frame(shim: ctypes.CDLL) -> None:
    frame = Frame()
    for number, name in enumerate(REGISTERS):
        place = shim.register_of(ctypes.byref(frame), number)
        assert place - ctypes.addressof(frame) == getattr(Frame, name).offset, name
