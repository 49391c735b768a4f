"""What a release changes and checks: `python tools/release.py check`, `python tools/release.py cut DATE`.

The version stands in the root's Cargo.toml; the guest's workspaces, which cannot inherit it, must agree.
"""

from __future__ import annotations

import datetime as dt
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANIFESTS = ("Cargo.toml", "guest/Cargo.toml", "guest/aot/Cargo.toml")
UNRELEASED = "## [Unreleased]"
FIRST = re.compile(r"\n\nThe first version will be [\d.]+\.")


class ReleaseError(Exception):
    """Something does not fit together."""


def version(root: Path = ROOT) -> str:
    """The one version of everything that is built here."""
    found = {}
    for name in MANIFESTS:
        match = re.search(r'^version = "([^"]+)"', (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        if match is None:
            raise ReleaseError(f"{name} has no version")
        found[name] = match[1]
    if len(set(found.values())) != 1:
        raise ReleaseError("the versions differ: " + ", ".join(f"{name} {each}" for name, each in found.items()))
    return found[MANIFESTS[0]]


def cut(changelog: str, version: str, date: dt.date) -> str:
    """The change log with what is unreleased under the version, and an empty part for what comes next."""
    if f"## [{version}]" in changelog:
        raise ReleaseError(f"CHANGELOG.md has {version} already: raise the version in {MANIFESTS[0]}")
    before, found, after = changelog.partition(UNRELEASED)
    if not found:
        raise ReleaseError(f"CHANGELOG.md has no part {UNRELEASED!r}")
    own = after.partition("\n## [")[0]
    if "\n- " not in own:
        raise ReleaseError("CHANGELOG.md has nothing under Unreleased")
    return f"{before}{UNRELEASED}\n\n## [{version}] - {date:%Y-%m-%d}{FIRST.sub('', after, count=1)}"


def check(root: Path = ROOT) -> str:
    """Nothing is written. Returns the version that a release would have."""
    found = version(root)
    cut((root / "CHANGELOG.md").read_text(encoding="utf-8"), found, dt.datetime.now(dt.timezone.utc).date())
    shown = f"| wcpod {found} |"
    if shown not in (root / "README.md").read_text(encoding="utf-8"):
        raise ReleaseError(f"README.md compares another version: {shown!r} is not in it")
    return found


def main(arguments: list[str]) -> None:
    match arguments:
        case ["check"]:
            print(f"release: {check()} could be released")
        case ["cut", date]:
            path = ROOT / "CHANGELOG.md"
            path.write_text(
                cut(path.read_text(encoding="utf-8"), check(), dt.date.fromisoformat(date)), encoding="utf-8"
            )
            print(f"release: {path.name} is cut; commit it, tag v{version()}, then build from the tag")
        case _:
            sys.exit(f"usage: {(__doc__ or '').splitlines()[0]}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ReleaseError as error:
        sys.exit(f"release: {error}")
