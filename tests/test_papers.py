"""Licence texts and bill of materials: everything that the wheel holds has its papers, or the build fails."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cyclonedx", reason="cyclonedx-python-lib is not installed (dependency group build)")

ROOT = Path(__file__).parent.parent
NO_VERSIONS = dict.fromkeys(("python", "sqlite", "zlib", "rust", "componentize-py"), "")
TEXTS = sorted(path.name for path in (ROOT / "licenses").glob("*.txt"))


@pytest.fixture(scope="module")
def papers() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import papers

        if not papers.GUEST_PAPERS.is_dir():
            pytest.skip("the guest was not built (make guest)")
        yield papers
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.fixture(scope="module")
def found(papers: Any) -> Any:
    return papers.components()


def test_the_parts_that_everybody_would_ask_for_are_there(found: Any) -> None:
    inside = {(each.name, each.inside) for each in found}
    guest = {"CPython", "SQLite", "zlib", "wasi-libc", "tzdata", "wasmtime", "hyperlight-guest-bin", "componentize-py"}
    extension = {"hyperlight-host", "ring", "rustls", "webpki-roots", "pyo3"}
    assert {(name, "guest image") for name in guest} | {(name, "extension") for name in extension} <= inside
    versions = {each.name: each.version for each in found}
    assert versions["CPython"].startswith("3.14.")


def test_every_licence_is_allowed(papers: Any, found: Any) -> None:
    papers.check(found)


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
    ],
)
def test_licence_expressions(papers: Any, expression: str, allowed: bool) -> None:
    assert papers.is_allowed(expression, papers.allowed_licences()) is allowed


def test_a_licence_that_is_not_allowed_is_an_error(papers: Any, found: Any) -> None:
    import dataclasses

    other = dataclasses.replace(found[0], name="thing", version="1", license="GPL-3.0-only")
    with pytest.raises(papers.PapersError) as raised:
        papers.check([*found, other])
    assert str(raised.value) == "these licences are not allowed by deny.toml: thing 1: GPL-3.0-only"


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_is_removed_fails_the_build(
    papers: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "licenses", tmp_path / "licenses")
    (tmp_path / "licenses" / name).unlink()
    monkeypatch.setattr(papers, "TEXTS", tmp_path / "licenses")
    monkeypatch.setattr(papers, "ROOT", tmp_path)
    monkeypatch.setattr(papers, "versions", lambda: NO_VERSIONS)
    with pytest.raises(papers.PapersError) as raised:
        list(papers.others())
    assert str(raised.value) == f"the licence text licenses/{name} is missing"


def test_the_text_of_a_package_that_is_removed_fails_the_build(
    papers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = shutil.copytree(papers.GUEST_PAPERS, tmp_path / "papers")
    (kept / "package-tzdata.txt").unlink()
    monkeypatch.setattr(papers, "GUEST_PAPERS", kept)
    monkeypatch.setattr(papers, "ROOT", tmp_path)
    monkeypatch.setattr(papers, "versions", lambda: NO_VERSIONS)
    with pytest.raises(papers.PapersError, match=r"papers/package-tzdata\.txt is missing"):
        list(papers.others())


def test_a_crate_without_a_text_fails_the_build(papers: Any, tmp_path: Path) -> None:
    package = {"name": "bare", "version": "1.0.0", "license": "MIT", "manifest_path": str(tmp_path / "Cargo.toml")}
    with pytest.raises(papers.PapersError) as raised:
        papers.crate({**package, "repository": None, "homepage": None}, "extension")
    assert str(raised.value) == "the crate bare 1.0.0 (MIT) has no licence text"
    (tmp_path / "LICENSE-MIT").write_text("terms")
    assert papers.crate({**package, "repository": None, "homepage": None}, "extension").texts == ("terms",)


def test_the_notices_name_everything_once_for_each_text(papers: Any, found: Any) -> None:
    text = papers.notices(found)
    for each in found:
        assert f"{each.name} {each.version}".strip() + f" ({each.inside}; {each.license})" in text
        assert each.texts[0].strip().splitlines()[0].rstrip() in text
    assert text.count("PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2") >= 1


def test_the_bill_of_materials_covers_the_guest_and_is_the_same_each_time(papers: Any, found: Any) -> None:
    first = papers.guest_bom(found)
    assert papers.guest_bom(found) == first
    document = json.loads(first)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    listed = {(each["name"], each.get("version", "")) for each in document["components"]}
    assert listed == {(each.name, each.version) for each in found if each.inside == "guest image"}
    assert [each["name"] for each in document["components"] if not each.get("licenses")] == []
    assert len(document["metadata"]["component"]["hashes"][0]["content"]) == 64
