"""How a run ended. The host core makes these objects, by the names of their fields."""

from __future__ import annotations

import base64
import dataclasses
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wcpod.sandbox.result_html import result_html

Kind = Literal["ok", "error", "timeout", "cancelled", "memory", "output", "crash"]
CallStatus = Literal["ok", "blocked", "error", "timeout", "cancelled"]


@dataclass(frozen=True, slots=True)
class Isolation:
    """Where code runs."""

    tier: Literal["micro-vm", "wasm"]
    hypervisor: str
    """"kvm", or "kvm_pvm" where KVM works without the processor's virtualisation."""
    privilege_mode: Literal["ring0", "ring3"]
    """The ring that the guest's interpreter runs in. Neither is a boundary: the virtual machine is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRecord:
    """What one `fetch_url` did."""

    url: str
    final_url: str
    """The URL that answered, or the one that was refused."""
    host: str | None
    address: str | None
    """The address that was dialed, also in vain; None from an archive or the run's cache."""
    http_status: int | None
    bytes: int
    """Bytes of the page after decompression."""
    sha256: str | None
    """Of those bytes, in hexadecimal."""
    title: str | None
    time: str = ""
    """When it started, RFC 3339 in UTC."""
    agent: str | None = None
    status: Literal["ok", "blocked", "error"] = "ok"
    decision: Literal["allow", "block"] = "allow"
    reason: str | None = None
    """Why it is not ok, or why the page is not whole."""
    duration: float = 0.0
    """Seconds."""
    from_cache: bool = False
    redirects: int = 0
    truncated: bool = False
    record_error: str | None = None
    """Why the page could not be kept in the record folder."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call of the guest that reached the host, however it ended."""

    name: str
    """"fetch_url", or a tool's name."""
    agent: str | None
    status: CallStatus
    seconds: float
    reason: str | None
    """Why it is not ok."""
    fetch: FetchRecord | None
    """For `fetch_url`."""
    count: int = 1
    """How many calls this stands for: more than one only where a run went on calling after its limit of host calls."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run took."""

    seconds: float
    """From the end of the restore to the end of the run."""
    restore_seconds: float
    dirtied_pages: int
    """Pages of 4 KiB that were copied or made since the restore, tables included."""
    peak_memory: int
    """Largest size of the interpreter's memory, in bytes; 0 where the run did not come to its end."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """True sizes of the output streams of a run that printed more than its limit."""

    stdout_bytes: int
    stdout_omitted: int
    stderr_bytes: int
    stderr_omitted: int


_shown = reprlib.Repr()
_shown.maxstring = 500
_shown.maxdict = 10


@dataclass(frozen=True, slots=True, repr=False)
class ExecutionResult:
    """How a run ended. Every field is the host's word, apart from text and values that the code itself made.

    True when the code ended with exit code 0: `if sandbox.run(code): ...`
    """

    kind: Kind
    """"ok": exit code 0. "error": it raised, or another exit code. "timeout", "memory", "output": it hit that limit.
    "cancelled": the caller cancelled it. "crash": the guest ended otherwise; `detail` says how."""
    exit_code: int
    stdout: str
    """What it printed. When cut, head and tail with a note of how much is missing between them."""
    stderr: str
    """Its standard error, tracebacks included."""
    value: str | None
    """`repr` of the last statement when that is an expression and not None."""
    files: dict[str, bytes]
    """What it left below /output: relative path and content."""
    host_calls: tuple[HostCall, ...]
    usage: Usage
    truncated: Truncated | None
    """True sizes when output was cut."""
    isolation: Isolation
    detail: str | None = None
    """What the host knows about an end that was not the code's own."""

    @property
    def ok(self) -> bool:
        """Whether the code ended with exit code 0."""
        return self.kind == "ok"

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        texts = {"stdout": self.stdout, "stderr": self.stderr, "value": self.value, "detail": self.detail}
        parts = [f"{name}={_shown.repr(text)}" for name, text in texts.items() if text]
        if self.files:
            parts.append(f"files={_shown.repr({name: f'{len(data)} bytes' for name, data in self.files.items()})}")
        if self.host_calls:
            parts.append(f"host_calls={sum(call.count for call in self.host_calls)}")
        if self.truncated is not None:
            parts.append("truncated")
        ended = f"{self.kind}, exit code {self.exit_code}, {self.usage.seconds:.3f} s"
        return f"<ExecutionResult: {', '.join([ended, *parts])}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return result_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that JSON has; the files in base64."""
        fields = dataclasses.asdict(self)
        fields["files"] = {name: base64.b64encode(data).decode("ascii") for name, data in self.files.items()}
        fields["host_calls"] = list(fields["host_calls"])
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> ExecutionResult:
        """The result that `to_dict` gave these fields of, also by way of JSON.

        Raises:
            ValueError: they are of no result.
        """
        try:
            calls = [{**call, "fetch": _made(FetchRecord, call["fetch"])} for call in fields["host_calls"]]
            nested = {
                "files": {name: base64.b64decode(data, validate=True) for name, data in fields["files"].items()},
                "host_calls": tuple(HostCall(**call) for call in calls),
                "usage": Usage(**fields["usage"]),
                "truncated": _made(Truncated, fields["truncated"]),
                "isolation": Isolation(**fields["isolation"]),
            }
            return cls(**{**fields, **nested})
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"these are not the fields of a result: {error}") from error


def _made(kind: type[Any], fields: Mapping[str, Any] | None) -> Any:
    return None if fields is None else kind(**fields)
