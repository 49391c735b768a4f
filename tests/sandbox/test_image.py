"""Where the guest image and the clean states are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from wcpod.sandbox.image import PACKAGED, image_path, snapshot_cache


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HYPERLIGHT_PYTHON_GUEST_PATH", "WCPOD_SNAPSHOT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")


def test_the_guest_image(monkeypatch: pytest.MonkeyPatch) -> None:
    assert image_path() == PACKAGED
    monkeypatch.setenv("HYPERLIGHT_PYTHON_GUEST_PATH", "/opt/other.bin")
    assert image_path() == Path("/opt/other.bin")


def test_the_folder_of_clean_states(monkeypatch: pytest.MonkeyPatch) -> None:
    assert snapshot_cache() == Path("/home/somebody/.cache/wcpod/snapshots")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert snapshot_cache() == Path("/var/cache/wcpod/snapshots")
    monkeypatch.setenv("WCPOD_SNAPSHOT_CACHE", "/srv/states")
    assert snapshot_cache() == Path("/srv/states")
    monkeypatch.setenv("WCPOD_SNAPSHOT_CACHE", "off")
    assert snapshot_cache() is None


def test_a_user_without_a_home_keeps_no_states(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", nobody)
    assert snapshot_cache() is None
