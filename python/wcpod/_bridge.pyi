"""The Rust extension. Private: use the package `wcpod`."""

from collections.abc import Callable
from os import PathLike
from typing import final

from wcpod.sandbox.limits import FetchLimits, Limits
from wcpod.sandbox.result import HostCall, Isolation

__all__ = [
    "DEBUG_BUILD",
    "INTERFACE_VERSION",
    "LAYOUT",
    "VERSION",
    "Answer",
    "AuditLog",
    "Events",
    "FetchPolicy",
    "FetchSession",
    "RunOrder",
    "SandboxCore",
    "Snapshot",
    "ToolCall",
    "ToolCalls",
    "detect_hypervisor",
    "extract_page",
    "image_digest",
]

DEBUG_BUILD: bool
VERSION: str
INTERFACE_VERSION: int
LAYOUT: dict[str, int]

def detect_hypervisor() -> str: ...
def image_digest(path: str | PathLike[str]) -> str: ...
def extract_page(html: bytes, content_type: str, url: str, limit: int) -> str: ...

@final
class FetchPolicy:
    def __new__(
        cls, hosts: list[str], paths: list[str] | None, query: bool, max_url_bytes: int | None
    ) -> FetchPolicy: ...
    @property
    def hosts(self) -> list[str]: ...
    def check(self, url: str) -> tuple[bool, str, str | None]: ...

@final
class FetchSession:
    def __new__(
        cls,
        policy: FetchPolicy,
        *,
        archive: str | PathLike[str] | None = None,
        record: str | PathLike[str] | None = None,
        limits: FetchLimits | None = None,
        contact: str | None = None,
    ) -> FetchSession: ...

@final
class AuditLog:
    def __new__(cls, path: str | PathLike[str]) -> AuditLog: ...

@final
class Events:
    def __new__(cls, calls: bool, output: bool, most_output: int, agent: str | None) -> Events: ...
    def next(self) -> HostCall | tuple[str, str] | None: ...

@final
class ToolCall:
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> str: ...
    def seconds_left(self) -> float: ...
    def is_abandoned(self) -> bool: ...
    def answer(self, value: str) -> None: ...
    def fail(self, class_name: str, message: str) -> None: ...

@final
class ToolCalls:
    def __new__(cls, names: list[str]) -> ToolCalls: ...
    def next(self) -> ToolCall | None: ...

@final
class RunOrder:
    def __new__(
        cls,
        code: str,
        *,
        inputs: list[tuple[str, bytes]],
        limits: Limits,
        tools: ToolCalls | None,
        events: Events | None,
        session: FetchSession | None,
        audit: AuditLog | None,
        agent: str | None,
    ) -> RunOrder: ...

@final
class Answer:
    def get(self) -> tuple[object, list[str]]: ...

@final
class Snapshot:
    @staticmethod
    def load(folder: str | PathLike[str]) -> Snapshot: ...
    def save(self, folder: str | PathLike[str]) -> None: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def image_sha256(self) -> str: ...

@final
class SandboxCore:
    @staticmethod
    def boot(
        image: str | PathLike[str],
        memory_bytes: int,
        cache: str | PathLike[str] | None,
        done: Callable[[Answer], None] | None = None,
    ) -> SandboxCore: ...
    @staticmethod
    def from_snapshot(snapshot: Snapshot, done: Callable[[Answer], None] | None = None) -> SandboxCore: ...
    @property
    def isolation(self) -> Isolation: ...
    @property
    def boot_seconds(self) -> float: ...
    @property
    def snapshot_seconds(self) -> float: ...
    @property
    def known_pages(self) -> int: ...
    def replaced(self) -> int: ...
    def clean(self) -> Snapshot: ...
    def run(
        self, order: RunOrder, wait: float | None = None, done: Callable[[Answer], None] | None = None
    ) -> Answer | int: ...
    def restore(self) -> float: ...
    def capture(self, done: Callable[[Answer], None] | None = None) -> Answer | int: ...
    def adopt(self, snapshot: Snapshot, done: Callable[[Answer], None] | None = None) -> Answer | int: ...
    def cancel(self, number: int) -> None: ...
    def take_back(self, number: int, seconds: float) -> bool: ...
    def close(self, wait: bool) -> None: ...
    def is_closed(self) -> bool: ...
