"""The Rust extension. Private: use the package `wcpod`."""

from collections.abc import Callable
from os import PathLike
from typing import Literal, final

__all__ = [
    "DEBUG_BUILD",
    "INTERFACE_VERSION",
    "VERSION",
    "CallRecord",
    "FetchPolicy",
    "FetchSession",
    "MicroVm",
    "RunReport",
    "Snapshot",
    "Stop",
    "detect_hypervisor",
    "extract_page",
    "image_digest",
]

DEBUG_BUILD: bool
VERSION: str
INTERFACE_VERSION: int

def detect_hypervisor() -> str: ...
def image_digest(path: str | PathLike[str]) -> str: ...
def extract_page(html: bytes, content_type: str, url: str, limit: int) -> str: ...

@final
class FetchPolicy:
    def __new__(
        cls, hosts: list[str] | None, paths: list[str] | None, query: bool, max_url_bytes: int | None
    ) -> FetchPolicy: ...
    @property
    def hosts(self) -> list[str]: ...
    def check(self, url: str) -> tuple[bool, str, str | None]: ...

@final
class FetchSession:
    def __new__(
        cls,
        policy: FetchPolicy,
        archive: str | PathLike[str] | None,
        record: str | PathLike[str] | None,
        fetches: int | None,
        contact: str | None,
        pause: float | None,
    ) -> FetchSession: ...

@final
class CallRecord:
    @property
    def name(self) -> str: ...
    @property
    def status(self) -> Literal["ok", "blocked", "error", "timeout", "cancelled"]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def fetch(self) -> str | None: ...

@final
class Stop:
    def __new__(cls) -> Stop: ...
    def cancel(self) -> None: ...

@final
class RunReport:
    @property
    def kind(self) -> Literal["ok", "error", "timeout", "cancelled", "memory", "output", "crash"]: ...
    @property
    def exit_code(self) -> int: ...
    @property
    def stdout(self) -> str: ...
    @property
    def stderr(self) -> str: ...
    @property
    def output_bytes(self) -> tuple[int, int, int, int]: ...
    @property
    def value(self) -> str | None: ...
    @property
    def detail(self) -> str | None: ...
    @property
    def files(self) -> list[tuple[str, bytes]]: ...
    @property
    def calls(self) -> list[CallRecord]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def restore_seconds(self) -> float: ...
    @property
    def dirtied_pages(self) -> int: ...
    @property
    def peak_memory(self) -> int: ...

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
class MicroVm:
    @staticmethod
    def boot(image: str | PathLike[str], memory_bytes: int, cache: str | PathLike[str] | None) -> MicroVm: ...
    @staticmethod
    def from_snapshot(snapshot: Snapshot) -> MicroVm: ...
    def capture(self, clean: bool) -> Snapshot: ...
    def adopt(self, snapshot: Snapshot) -> None: ...
    @property
    def hypervisor(self) -> str: ...
    @property
    def privilege_ring(self) -> int: ...
    @property
    def boot_seconds(self) -> float: ...
    @property
    def snapshot_seconds(self) -> float: ...
    @property
    def known_pages(self) -> int: ...
    def replaced(self) -> int: ...
    def restore(self) -> float: ...
    def run(
        self,
        code: str,
        *,
        inputs: list[tuple[str, bytes]],
        seconds: float,
        memory_bytes: int,
        output_bytes: int,
        host_calls: int,
        stop: Stop,
        dispatch: Callable[[str, str, float], str] | None,
        tools: list[str],
        on_call: Callable[[CallRecord], None] | None,
        on_output: Callable[[str, str], None] | None,
        session: FetchSession | None,
        agent: str | None,
        warm: bool,
    ) -> RunReport: ...
    def close(self) -> None: ...
