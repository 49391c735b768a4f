"""A release, dry: versions that agree, a change log that can be cut, and what wcpod says of its guest image."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wcpod.doctor import provenance

ROOT = Path(__file__).parent.parent
DAY = dt.date(2026, 12, 24)
LOG = "# Changelog\n\n## [Unreleased]\n\nThe first version will be 0.1.0.\n\n### Added\n\n- A thing.\n"


@pytest.fixture(scope="module")
def release() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import release

        yield release
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("Cargo.toml", "guest/Cargo.toml", "guest/aot/Cargo.toml", "CHANGELOG.md", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_what_is_here_could_be_released(release: Any) -> None:
    assert release.check() == release.version()


def test_versions_that_differ(release: Any, copy: Path) -> None:
    path = copy / "guest" / "aot" / "Cargo.toml"
    path.write_text(path.read_text().replace(f'version = "{release.version()}"', 'version = "9.9.9"', 1))
    with pytest.raises(
        release.ReleaseError, match=r"^the versions differ: Cargo\.toml .*, guest/aot/Cargo\.toml 9\.9\.9$"
    ):
        release.check(copy)


def test_a_readme_that_compares_another_version(release: Any, copy: Path) -> None:
    path = copy / "README.md"
    path.write_text(path.read_text().replace(f"| wcpod {release.version()} |", "| wcpod 0.0.1 |"))
    with pytest.raises(release.ReleaseError, match=r"README\.md compares another version"):
        release.check(copy)


def test_the_change_log_is_cut(release: Any) -> None:
    once = release.cut(LOG, "0.1.0", DAY)
    assert once == "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-12-24\n\n### Added\n\n- A thing.\n"
    with pytest.raises(release.ReleaseError, match=r"CHANGELOG\.md has 0\.1\.0 already: raise"):
        release.cut(once, "0.1.0", DAY)
    with pytest.raises(release.ReleaseError, match=r"CHANGELOG\.md has nothing under Unreleased"):
        release.cut(once, "0.2.0", DAY)
    with pytest.raises(release.ReleaseError, match=r"CHANGELOG\.md has no part"):
        release.cut("# Changelog\n", "0.2.0", DAY)


RECORD = {
    "commit": "0123456789abcdef",
    "local_changes": False,
    "rustc": "rustc 1.95.0",
    "componentize_py": "0.25.1",
    "python": "3.14.0",
    "packages": [{"name": "tzdata", "version": "2026.6"}],
}


@pytest.mark.parametrize(
    ("change", "ok", "text"),
    [
        (
            {},
            True,
            "commit 0123456789ab; CPython 3.14.0, componentize-py 0.25.1, rustc 1.95.0; packages: tzdata 2026.6",
        ),
        ({"local_changes": True}, True, "commit 0123456789ab, with local changes; CPython 3.14.0"),
        ({"commit": None, "packages": []}, True, "a source distribution; CPython 3.14.0"),
        ({"sha256": "f" * 64}, False, "describes another image (sha256 ffffffffffffffff): build it again"),
        ({"python": None, "packages": 3}, False, "cannot be read: TypeError"),
    ],
)
def test_where_the_guest_image_comes_from(tmp_path: Path, change: dict[str, Any], ok: bool, text: str) -> None:
    image = tmp_path / "guest.bin"
    image.write_bytes(b"image")
    digest = hashlib.sha256(b"image").hexdigest()
    image.with_suffix(".json").write_text(json.dumps({"sha256": digest, **RECORD, **change}))
    found = provenance(image, digest)
    assert found[:2] == (ok, "made from")
    assert text in found[2]


def test_an_image_that_says_nothing_of_its_origin(tmp_path: Path) -> None:
    assert provenance(tmp_path / "guest.bin", "0") == (True, "made from", "unknown: there is no guest.json beside it")
