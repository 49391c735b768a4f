"""What an `execute_code` is given: files below /input, domains that may be fetched from, limits of what comes back."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias, TypeGuard, cast
from urllib.parse import urlsplit

from wcpod.sandbox import FetchPolicy
from wcpod.sandbox.inputs import MOST_BYTES, read_file

INPUT = "/input"


class FileMount(NamedTuple):
    """A file or folder of the host that the code finds below /input."""

    host_path: str | Path
    mount_path: str


class AllowedDomain(NamedTuple):
    """A host that the code may fetch from; `methods` None stands for all that there are, which is GET."""

    target: str
    methods: tuple[str, ...] | None = None


FileMountInput: TypeAlias = str | tuple[str | Path, str] | FileMount
AllowedDomainInput: TypeAlias = str | tuple[str, str | Sequence[str]] | AllowedDomain


class OutputLimits(NamedTuple):
    """How much of what a run left below /output is handed back."""

    files: int
    file_bytes: int
    total_bytes: int


def positive(name: str, value: int) -> int:
    """`value`, if it is a whole number above 0.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is not above 0.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    if value <= 0:
        raise ValueError(f"{name} must be more than 0, not {value}")
    return value


def workspace(path: str | Path | None) -> Path | None:
    """The folder itself, wherever `path` leads.

    Raises:
        OSError: there is nothing.
        ValueError: it is no folder.
    """
    if path is None:
        return None
    folder = Path(path).expanduser().resolve(strict=True)
    if not folder.is_dir():
        raise ValueError(f"workspace_root must be a folder, and {str(path)!r} is none")
    return folder


def mounts_of(given: FileMountInput | Sequence[FileMountInput]) -> list[FileMount]:
    """One mount or several, with the paths that they stand for. A single text is the path on both sides.

    Raises:
        OSError: a file or folder is not there.
        ValueError: a path of the sandbox does not lie below /input.
    """
    one = isinstance(given, str) or _is_pair(given)
    several = [cast(FileMountInput, given)] if one else list(cast(Sequence[FileMountInput], given))
    mounts = []
    for mount in several:
        host, inside = (mount, mount) if isinstance(mount, str) else mount
        mounts.append(FileMount(Path(host).expanduser().resolve(strict=True), mount_path(inside)))
    return mounts


def _is_pair(given: object) -> TypeGuard[tuple[str | Path, str]]:
    return (
        isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], (str, Path)) and isinstance(given[1], str)
    )


def mount_path(path: str) -> str:
    """`path` below /input, as in "data/table.csv".

    Raises:
        ValueError: it leads out of /input, or to /input itself.
    """
    parts = [part for part in PurePosixPath(path.strip().replace("\\", "/")).parts if part not in ("/", ".")]
    if parts[:1] == ["input"]:
        parts = parts[1:]
    if ".." in parts:
        raise ValueError(f"the mount path {path!r} leads out of {INPUT}")
    if not parts:
        raise ValueError(f"the mount path {path!r} names no file or folder below {INPUT}")
    return "/".join(parts)


def domains_of(given: AllowedDomainInput | Sequence[AllowedDomainInput]) -> list[AllowedDomain]:
    """One domain or several, as exact host names with sorted methods.

    Raises:
        FetchPolicyError: a host cannot be allowed.
        ValueError: an entry is empty, or allows no GET.
    """
    one = isinstance(given, (str, AllowedDomain)) or _is_domain_pair(given)
    several = [cast(AllowedDomainInput, given)] if one else list(cast(Sequence[AllowedDomainInput], given))
    return [_domain(entry) for entry in several]


def _is_domain_pair(given: object) -> bool:
    """Whether this is ("example.org", "GET") or ("example.org", ["GET"]), and no pair of two domains."""
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], str):
        return False
    return isinstance(given[1], str) or (isinstance(given[1], Sequence) and not isinstance(given[1], AllowedDomain))


def _domain(entry: AllowedDomainInput) -> AllowedDomain:
    target, methods = (entry, None) if isinstance(entry, str) else entry
    host = domain_name(target)
    FetchPolicy([host])
    if methods is None:
        return AllowedDomain(host)
    asked = [methods] if isinstance(methods, str) else list(methods)
    named = tuple(sorted({method.strip().upper() for method in asked}))
    if "GET" not in named:
        raise ValueError(f"{host} is allowed {', '.join(named) or 'no method'}, and a sandbox can only GET")
    return AllowedDomain(host, named)


def domain_name(target: str) -> str:
    """The host of "example.org" or of "https://example.org/path", in lower case.

    Raises:
        ValueError: there is none.
    """
    text = target.strip()
    host = urlsplit(text if "://" in text else f"//{text}").netloc.lower()
    if not host:
        raise ValueError(f"the allowed domain {target!r} names no host")
    return host


def read_inputs(root: Path | None, mounts: Sequence[FileMount]) -> dict[str, bytes]:
    """What stands below /input, as it is now: the workspace, and the mounts over it.

    Raises:
        OSError: something cannot be read.
        ValueError: there is a link, or more than a run may be given.
    """
    places = [] if root is None else [(root, "")]
    places += [(Path(mount.host_path), mount.mount_path) for mount in mounts]
    found: dict[str, bytes] = {}
    space = MOST_BYTES
    for host, below in places:
        for file, name in _plain_files(host, below):
            found[name] = read_file(file, space, follow=False)
            space -= len(found[name])
    return found


def _plain_files(path: Path, name: str) -> Iterator[tuple[Path, str]]:
    """The plain files at or below `path`, with their names below /input. Sockets and devices are left out."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        raise ValueError(f"{str(path)!r} is a link, and what a link leads to is not given to a sandbox")
    if stat.S_ISREG(mode):
        yield path, name
    elif stat.S_ISDIR(mode):
        for child in sorted(path.iterdir()):
            yield from _plain_files(child, f"{name}/{child.name}" if name else child.name)
