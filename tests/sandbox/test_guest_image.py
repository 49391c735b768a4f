"""Guest images that cannot be used, and machines without a hypervisor: one clear error each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wcpod import Sandbox, doctor
from wcpod._bridge import INTERFACE_VERSION
from wcpod.exceptions import GuestImageError
from wcpod.sandbox.image import VARIABLE, image_path


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "guest.bin"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@pytest.mark.microvm
def test_a_missing_image(image: Path) -> None:
    with pytest.raises(GuestImageError, match=rf"the guest image {image} cannot be read .*make guest"):
        Sandbox()


@pytest.mark.microvm
def test_a_file_that_is_no_image(image: Path) -> None:
    image.write_text("#!/bin/sh\n")
    with pytest.raises(GuestImageError, match="it is not an ELF file"):
        Sandbox()


@pytest.mark.microvm
def test_another_program(image: Path) -> None:
    image.write_bytes(Path(sys.executable).resolve().read_bytes())
    with pytest.raises(GuestImageError, match="does not name a wcpod guest interface"):
        Sandbox()


@pytest.mark.microvm
def test_a_cut_off_image(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    whole = image_path().read_bytes()
    monkeypatch.setenv(VARIABLE, str(image))
    image.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(GuestImageError, match="it is cut off"):
        Sandbox()


@pytest.mark.microvm
def test_an_image_of_another_version(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    whole = image_path().read_bytes()
    monkeypatch.setenv(VARIABLE, str(image))
    mark = f"wcpod-guest-interface={INTERFACE_VERSION}".encode()
    assert mark in whole
    image.write_bytes(whole.replace(mark, b"wcpod-guest-interface=9"))
    with pytest.raises(GuestImageError, match="of another version"):
        Sandbox()


@pytest.mark.microvm
def test_an_image_whose_code_is_damaged_ends_in_an_error_not_in_a_hang(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    whole = bytearray(image_path().read_bytes())
    monkeypatch.setenv(VARIABLE, str(image))
    at = whole.index(b"wcpod-guest-interface=")
    # Everything that is code and data, the headers and the mark left alone: the guest runs into garbage at once.
    for offset in range(0x1000, len(whole), 64):
        if not at - 64 <= offset <= at + 64:
            whole[offset] ^= 0x5A
    image.write_bytes(whole)
    with pytest.raises(GuestImageError):
        Sandbox()


@pytest.mark.microvm
def test_the_doctor_is_content(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main() == 0
    out = capsys.readouterr().out
    assert "A sandbox works here." in out
    assert "NO " not in out


def test_without_a_device_the_error_says_what_to_do(tmp_path: Path) -> None:
    """In a mount namespace of its own whose /dev has no kvm: the real code path, not a stand-in."""
    code = (
        "from wcpod import Sandbox\nfrom wcpod.exceptions import HypervisorUnavailable\n"
        "try: Sandbox()\nexcept HypervisorUnavailable as error: print(error)\n"
        "from wcpod import doctor\nprint(doctor.main())"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    mount = 'mount -t tmpfs none /dev && exec "$0" "$1"'
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", mount, sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        check=False,
    )
    if "unshare" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr.strip()}")
    assert "/dev/kvm does not exist" in done.stdout, done.stderr
    assert "NO  hypervisor" in done.stdout
    assert done.stdout.rstrip().endswith("1")
