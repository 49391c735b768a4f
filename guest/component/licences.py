"""Licence texts of the Python packages in the guest, and of what made its interpreter."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path


def collect(site_packages: Path, papers: Path) -> None:
    """Writes ``packages.json``, a text for each package, and that of componentize-py, whose runtime is linked in."""
    found = []
    for package in sorted(distributions(path=[str(site_packages)]), key=lambda each: each.name):
        (papers / f"package-{package.name}.txt").write_text(text(package), encoding="utf-8")
        license = package.metadata.get("License-Expression") or package.metadata.get("License") or ""
        found.append({"name": package.name, "version": package.version, "license": license})
    (papers / "packages.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    (papers / "componentize-py.txt").write_text(text(distribution("componentize-py")), encoding="utf-8")


def text(package: Distribution) -> str:
    """The licence files of a distribution, one after the other."""
    texts = [
        file.read_text(encoding="utf-8")
        for file in package.files or []
        if file.parts[0].endswith(".dist-info")
        and (file.parts[1] == "licenses" or file.name.upper().startswith(("LICEN", "COPYING", "NOTICE")))
    ]
    if not texts:
        raise SystemExit(f"{package.name} {package.version} comes without a licence text")
    return "\n\n".join(texts)
