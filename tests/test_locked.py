"""Every Python package that a checkout installs has one version, exact, in constraints.txt."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
#: What `make` puts into .venv; what benchmarks and releases need is installed when they run.
GROUPS = ("build", "test", "lint")


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    matches = [
        re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s;]+)", line) for line in lines if line and not line.startswith("#")
    ]
    assert None not in matches, "constraints.txt has a line that is no exact version"
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


def wanted() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    named = [*project["project"]["dependencies"], *(each for extra in extras for each in extra)]
    named += [each for group in GROUPS for each in project["dependency-groups"][group]]
    return [Requirement(each) for each in named if not each.startswith("wcpod[")]


def installed() -> dict[str, str]:
    """What follows from the project's requirements, as far as it is installed here, with its versions."""
    found: dict[str, str] = {}
    pending = [(requirement, extra) for requirement in wanted() for extra in ("", *requirement.extras)]
    seen: set[tuple[str, str]] = set()
    while pending:
        requirement, extra = pending.pop()
        name = canonicalize_name(requirement.name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found[name] = package.version
        for text in package.requires or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                pending += [(needed, each) for each in ("", *needed.extras)]
    return found


def test_every_package_is_pinned_and_has_that_version() -> None:
    locked, here = pinned(), installed()
    assert len(here) > 50
    assert {name: version for name, version in here.items() if locked.get(name) != version} == {}


def test_no_package_is_pinned_twice() -> None:
    names = [line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()]
    assert len(names) == len({canonicalize_name(name) for name in names})


@pytest.mark.parametrize("workspace", ["", "guest", "guest/aot", "fuzz"])
def test_every_crate_comes_from_the_registry_with_its_hash(workspace: str) -> None:
    """No git revision, no other registry; what has no source is ours."""
    packages = tomllib.loads((ROOT / workspace / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    foreign = [package for package in packages if "source" in package]
    assert {package["source"] for package in foreign} == {"registry+https://github.com/rust-lang/crates.io-index"}
    assert [package["name"] for package in foreign if len(package.get("checksum", "")) != 64] == []
