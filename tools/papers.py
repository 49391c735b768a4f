"""Licence texts, and the bill of materials of the guest image, for the wheel: `make papers`.

Writes `THIRD-PARTY-NOTICES.txt` (every licence text of what the extension and the guest image hold) and
`guest/build/python-guest.cyclonedx.json`. The extension's bill of materials is maturin's. A component without a text,
or under a licence that `deny.toml` does not allow, is an error.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component as BomComponent
from cyclonedx.model.component import ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from license_expression import get_spdx_licensing
from packageurl import PackageURL

ROOT = Path(__file__).resolve().parent.parent
TEXTS = ROOT / "licenses"
GUEST_PAPERS = ROOT / "guest" / "build" / "stdlib.papers"
IMAGE = ROOT / "python" / "wcpod" / "guest" / "python-guest.bin"
NOTICES = ROOT / "THIRD-PARTY-NOTICES.txt"
GUEST_BOM = ROOT / "guest" / "build" / "python-guest.cyclonedx.json"

EXTENSION, GUEST = "extension", "guest image"
LICENCE_FILES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
#: For crates that are published without a licence file.
STANDARD_TEXTS = {
    "Apache-2.0": ("Apache-2.0.txt",),
    "Apache-2.0 WITH LLVM-exception": ("Apache-2.0.txt", "LLVM-exception.txt"),
}
SPDX = get_spdx_licensing()


class PapersError(Exception):
    """A paper is missing, or a licence is not allowed."""


@dataclass(frozen=True)
class Component:
    """One thing that the wheel holds and that somebody else wrote."""

    name: str
    version: str
    license: str
    texts: tuple[str, ...]
    source: str
    inside: str
    purl: PackageURL


def crates(manifest: Path, root: str, inside: str, *options: str) -> list[Component]:
    """The crates that are linked into `root` for Linux on x86_64, ours left out."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--manifest-path", str(manifest)]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu", *options]
    metadata = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    pending = [identity for identity, package in packages.items() if package["name"] == root]
    linked: set[str] = set()
    while pending:
        identity = pending.pop()
        if identity not in linked:
            linked.add(identity)
            dependencies = nodes[identity]["deps"]
            pending += [each["pkg"] for each in dependencies if any(kind["kind"] is None for kind in each["dep_kinds"])]
    return [crate(packages[identity], inside) for identity in sorted(linked) if packages[identity]["source"]]


def crate(package: dict[str, Any], inside: str) -> Component:
    license = (package["license"] or "").replace(" / ", " OR ").replace("/", " OR ")
    folder = Path(package["manifest_path"]).parent
    files = sorted(file for file in folder.iterdir() if file.name.upper().startswith(LICENCE_FILES) and file.is_file())
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    if not texts and license in STANDARD_TEXTS:
        texts = [(TEXTS / name).read_text(encoding="utf-8") for name in STANDARD_TEXTS[license]]
    if not texts:
        raise PapersError(f"the crate {package['name']} {package['version']} ({license}) has no licence text")
    source = package["repository"] or package["homepage"] or ""
    purl = PackageURL("cargo", name=package["name"], version=package["version"])
    return Component(package["name"], package["version"], license, tuple(texts), source, inside, purl)


def versions() -> dict[str, str]:
    """What the guest's interpreter says of itself, and the tools that made it."""
    known: dict[str, str] = json.loads((GUEST_PAPERS / "versions.json").read_text(encoding="utf-8"))
    known["rust"] = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    known["componentize-py"] = next(line for line in lines if line.startswith("componentize-py==")).partition("==")[2]
    return known


def others() -> Iterator[Component]:
    """What `components.toml` lists, and the Python packages of the guest."""
    listed = tomllib.loads((TEXTS / "components.toml").read_text(encoding="utf-8"))["component"]
    known = versions()
    for each in listed:
        version = known[each["version"]] if each["version"] else ""
        texts = tuple(text_of(name) for name in each["texts"])
        purl = PackageURL("generic", name=each["name"].lower().replace(" ", "-"), version=version or None)
        yield Component(each["name"], version, each["license"], texts, each["source"], GUEST, purl)
    for package in json.loads((GUEST_PAPERS / "packages.json").read_text(encoding="utf-8")):
        name, version = package["name"], package["version"]
        text = text_of(f"guest:package-{name}.txt")
        source = f"https://pypi.org/project/{name}/"
        purl = PackageURL("pypi", name=name.lower(), version=version)
        yield Component(name, version, package["license"], (text,), source, GUEST, purl)


def text_of(name: str) -> str:
    path = GUEST_PAPERS / name.removeprefix("guest:") if name.startswith("guest:") else TEXTS / name
    if not path.is_file():
        raise PapersError(f"the licence text {path.relative_to(ROOT)} is missing")
    return path.read_text(encoding="utf-8")


def components() -> list[Component]:
    """Everything, in the order in which it is printed."""
    features = ("--features", "hyperlight_bridge/python")
    extension = crates(ROOT / "Cargo.toml", "hyperlight_bridge", EXTENSION, *features)
    guest = crates(ROOT / "guest" / "Cargo.toml", "wcpod-guest", GUEST)
    return [*others(), *extension, *guest]


def allowed_licences() -> set[str]:
    """The list that `cargo deny` keeps, too."""
    allow: list[str] = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["licenses"]["allow"]
    return set(allow)


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Whether one of the alternatives that an expression leaves is made of allowed licences alone."""

    def holds(node: Any) -> bool:
        if isinstance(node, SPDX.OR):
            return any(holds(each) for each in node.args)
        if isinstance(node, SPDX.AND):
            return all(holds(each) for each in node.args)
        return str(node) in allowed

    return holds(SPDX.parse(expression, validate=True))


def check(found: list[Component]) -> None:
    allowed = allowed_licences()
    refused = [f"{each.name} {each.version}: {each.license}" for each in found if not is_allowed(each.license, allowed)]
    if refused:
        raise PapersError("these licences are not allowed by deny.toml: " + "; ".join(refused))


def notices(found: list[Component]) -> str:
    """Each text once, after the list of what it belongs to."""
    lines = ["What this wheel holds and others wrote, and under which terms. wcpod's own licence is in LICENSE.", ""]
    by_text: dict[str, list[Component]] = {}
    for each in found:
        for text in each.texts:
            by_text.setdefault("\n".join(line.rstrip() for line in text.strip().splitlines()), []).append(each)
    for text, owners in by_text.items():
        lines.append("=" * 100)
        names = {f"{each.name} {each.version}".strip() + f" ({each.inside}; {each.license})": None for each in owners}
        lines += [*names, "-" * 100, text, ""]
    return "\n".join(lines)


def guest_bom(found: list[Component]) -> str:
    """CycloneDX, the same for the same guest."""
    bom = Bom()
    inside = [each for each in found if each.inside == GUEST]
    for each in inside:
        reference = ExternalReference(type=ExternalReferenceType.WEBSITE, url=XsUri(each.source))
        bom.components.add(
            BomComponent(
                type=ComponentType.LIBRARY,
                name=each.name,
                version=each.version or None,
                licenses=[LicenseExpression(str(SPDX.parse(each.license)))],
                purl=each.purl,
                bom_ref=str(each.purl),
                external_references=[reference] if each.source else [],
            )
        )
    hashed = HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(IMAGE.read_bytes()).hexdigest())
    image = BomComponent(type=ComponentType.FIRMWARE, name=IMAGE.name, bom_ref="image", hashes=[hashed])
    bom.metadata.component = image
    bom.register_dependency(image, bom.components)
    document = json.loads(make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string())
    document["metadata"].pop("timestamp")
    listed = json.dumps([document["components"], document["metadata"]["component"]], sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, listed)}"
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def main() -> None:
    found = components()
    check(found)
    NOTICES.write_text(notices(found), encoding="utf-8")
    GUEST_BOM.write_text(guest_bom(found), encoding="utf-8")
    inside = {place: sum(each.inside == place for each in found) for place in (EXTENSION, GUEST)}
    print(f"papers: {NOTICES.name} and {GUEST_BOM.name} for {inside}")


if __name__ == "__main__":
    try:
        main()
    except PapersError as error:
        sys.exit(f"papers: {error}")
