"""What a client may call, with the arguments and results of each tool."""

from __future__ import annotations

import asyncio
import base64
import binascii
import dataclasses
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from mcp_types import CallToolResult, ContentBlock, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wcpod.exceptions import WcpodError
from wcpod.mcp_server.output_files import OutputFiles
from wcpod.mcp_server.tenancy import Refused, Tenancy, Terms
from wcpod.sandbox import ExecutionResult, Limits
from wcpod.sandbox.rendering import render_result

_PROGRESS_SECONDS = 0.5


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Base64File(_Arguments):
    """A file whose content is not text."""

    base64: str = Field(description="The content in base64.")


_Seconds = Annotated[float | None, Field(gt=0, description="Wall-clock seconds, at most the server's limit.")]
_Files = Annotated[
    dict[str, str | Base64File] | None,
    Field(description='Files to place below /input, by name: text, or {"base64": "..."}.'),
]
_Code = Annotated[str, Field(description="Python source to run.")]
_SandboxId = Annotated[str, Field(description="What create_sandbox returned.")]


class RunPython(_Arguments):
    """Arguments of `run_python`."""

    code: _Code
    timeout: _Seconds = None
    files: _Files = None


class CreateSandbox(_Arguments):
    """Arguments of `create_sandbox`."""

    seconds: Annotated[float | None, Field(gt=0, description="Wall-clock seconds of an execution.")] = None
    memory_mib: Annotated[int | None, Field(ge=32, description="Memory in MiB.")] = None
    output_bytes: Annotated[int | None, Field(ge=2, description="Bytes kept of each output stream.")] = None
    host_calls: Annotated[int | None, Field(ge=0, description="Most calls of host tools.")] = None


class ExecuteInSandbox(_Arguments):
    """Arguments of `execute_in_sandbox`."""

    sandbox_id: _SandboxId
    code: _Code
    timeout: _Seconds = None
    files: _Files = None


class DestroySandbox(_Arguments):
    """Arguments of `destroy_sandbox`."""

    sandbox_id: _SandboxId


class SandboxCreated(BaseModel):
    """A sandbox that was made, and what it may use."""

    sandbox_id: str
    isolation: str
    seconds: float
    memory_mib: int
    output_bytes: int
    host_calls: int
    hosts: list[str]
    idle_seconds: float


class HostCalled(BaseModel):
    """A call of the code that reached the host."""

    name: str
    status: str
    url: str | None
    reason: str | None


class Executed(BaseModel):
    """How an execution ended. `kind` is the host's word: ok, error, timeout, cancelled, memory, output, crash."""

    kind: str
    exit_code: int
    stdout: str
    stderr: str
    value: str | None
    files: dict[str, int]
    host_calls: list[HostCalled]
    seconds: float
    truncated: bool


class SandboxDestroyed(BaseModel):
    """A sandbox that is gone."""

    sandbox_id: str


class Progress(Protocol):
    """Tells the client how far a request is."""

    async def __call__(self, progress: float, total: float | None, message: str, /) -> None:
        """Tell it, if it asked for that."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolEntry:
    title: str
    description: str
    arguments: type[_Arguments]
    result: type[BaseModel]
    call: Callable[[Any, Progress], Awaitable[CallToolResult]]
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False


class SandboxTools:
    """The four tools, by name."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.tenancy = Tenancy(terms)
        self.output_files = OutputFiles()
        self._entries = self._table()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(self._entries)

    def listed(self) -> list[Tool]:
        """The tools as a client sees them."""
        return [
            Tool(
                name=name,
                title=entry.title,
                description=entry.description,
                input_schema=entry.arguments.model_json_schema(),
                output_schema=entry.result.model_json_schema(),
                annotations=ToolAnnotations(
                    title=entry.title,
                    read_only_hint=False,
                    destructive_hint=entry.destructive,
                    idempotent_hint=entry.idempotent,
                    open_world_hint=entry.open_world,
                ),
            )
            for name, entry in self._entries.items()
        ]

    async def call(self, name: str, arguments: Mapping[str, Any], progress: Progress) -> CallToolResult:
        """Call a tool. What the client or the sandbox did wrong is an answer with `is_error`.

        Raises:
            KeyError: if there is no such tool.
        """
        entry = self._entries[name]
        try:
            return await entry.call(entry.arguments.model_validate(arguments), progress)
        except ValidationError as error:
            problem = _wrong_arguments(error, entry.arguments)
        except (Refused, WcpodError, ValueError) as error:
            problem = str(error)
        return CallToolResult(content=[TextContent(text=f"{name}: {_valid(problem)}")], is_error=True)

    async def run_python(self, asked: RunPython, progress: Progress) -> CallToolResult:
        """One execution in a borrowed sandbox."""
        limits = self._limits({"seconds": asked.timeout}, names={"seconds": "timeout"})
        async with _reported(progress, limits) as on_output:
            result = await self.tenancy.execute_once(
                asked.code, inputs=_decoded(asked.files), limits=limits, on_output=on_output
            )
        return self._answer(result)

    async def create_sandbox(self, asked: CreateSandbox, _progress: Progress) -> CallToolResult:
        """A sandbox with an id."""
        limits = self._limits(asked.model_dump())
        name = await self.tenancy.create(limits)
        return _structured(
            SandboxCreated(
                sandbox_id=name,
                isolation="micro-vm",
                hosts=list(self._terms.hosts),
                idle_seconds=self._terms.idle_seconds,
                **dataclasses.asdict(limits),
            )
        )

    async def execute_in_sandbox(self, asked: ExecuteInSandbox, progress: Progress) -> CallToolResult:
        """One execution in the sandbox of that id."""
        limits = None if asked.timeout is None else self._limits({"seconds": asked.timeout}, {"seconds": "timeout"})
        async with _reported(progress, limits or self._terms.limits) as on_output:
            result = await self.tenancy.execute(
                asked.sandbox_id, asked.code, inputs=_decoded(asked.files), limits=limits, on_output=on_output
            )
        return self._answer(result)

    async def destroy_sandbox(self, asked: DestroySandbox, _progress: Progress) -> CallToolResult:
        """The sandbox of that id is gone."""
        await self.tenancy.destroy(asked.sandbox_id)
        return _structured(SandboxDestroyed(sandbox_id=asked.sandbox_id))

    def _table(self) -> dict[str, _ToolEntry]:
        reads_pages = bool(self._terms.hosts)
        fetching = (
            f' The code reads pages of {", ".join(self._terms.hosts)} with call_tool("fetch_url", url=...).'
            if reads_pages
            else ""
        )
        return {
            "run_python": _ToolEntry(
                title="Run Python",
                description="Run Python in an isolated micro-VM from its clean snapshot, and get what it printed, "
                "tracebacks included, the value of a last expression, and the files that it left in /output."
                + fetching,
                arguments=RunPython,
                result=Executed,
                call=self.run_python,
                open_world=reads_pages,
            ),
            "create_sandbox": _ToolEntry(
                title="Make a sandbox",
                description="Make a sandbox with limits of its own: Python 3 with its standard library, no host "
                "files. Limits are optional, and can only be lower than the server's.",
                arguments=CreateSandbox,
                result=SandboxCreated,
                call=self.create_sandbox,
            ),
            "execute_in_sandbox": _ToolEntry(
                title="Run Python in a sandbox",
                description="Run Python in a sandbox of create_sandbox. Every execution starts from the same clean "
                "snapshot." + fetching,
                arguments=ExecuteInSandbox,
                result=Executed,
                call=self.execute_in_sandbox,
                open_world=reads_pages,
            ),
            "destroy_sandbox": _ToolEntry(
                title="Destroy a sandbox",
                description="Destroy a sandbox. What runs in it is stopped.",
                arguments=DestroySandbox,
                result=SandboxDestroyed,
                call=self.destroy_sandbox,
                destructive=True,
            ),
        }

    def _limits(self, asked: Mapping[str, Any], names: Mapping[str, str] | None = None) -> Limits:
        """The server's limits, lowered as asked. `names` are what the client calls them."""
        chosen = {name: number for name, number in asked.items() if number is not None}
        for name, number in chosen.items():
            largest = getattr(self._terms.limits, name)
            if number > largest or math.isnan(number):
                shown = (names or {}).get(name, name)
                raise Refused(f"{shown} may be at most {largest:g} on this server, not {number:g}")
        return dataclasses.replace(self._terms.limits, **chosen)

    def _answer(self, result: ExecutionResult) -> CallToolResult:
        files = self.output_files.keep(result.files)
        return _structured(_executed(result), render_result(result), files)


@asynccontextmanager
async def _reported(progress: Progress, limits: Limits) -> AsyncIterator[Callable[[str, str], None]]:
    """While the block runs, the client hears every half second how long already and how much was printed."""
    begin, printed = time.monotonic(), 0
    total = limits.seconds if math.isfinite(limits.seconds) else None

    def on_output(_stream: str, text: str) -> None:
        nonlocal printed
        printed += len(text)

    async def report() -> None:
        while True:
            await asyncio.sleep(_PROGRESS_SECONDS)
            await progress(time.monotonic() - begin, total, f"running; {printed} characters printed")

    reports = asyncio.ensure_future(report())
    try:
        yield on_output
    finally:
        reports.cancel()
        await asyncio.wait([reports], timeout=1.0)


def _wrong_arguments(error: ValidationError, arguments: type[BaseModel]) -> str:
    known = ", ".join(arguments.model_fields)
    problems = []
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(part)[:80] for part in problem["loc"])
        if problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            problems.append(f"there is no argument {place!r}; there are: {known}")
        else:
            problems.append(f"{place}: {problem['msg']}")
    return "; ".join(problems[:5])


def _decoded(files: Mapping[str, str | Base64File] | None) -> dict[str, bytes]:
    contents = {}
    for name, content in (files or {}).items():
        try:
            contents[name] = (
                content.encode() if isinstance(content, str) else base64.b64decode(content.base64, validate=True)
            )
        except binascii.Error as error:
            raise Refused(f"the file {name[:80]!r} is not base64: {error}") from None
    return contents


def _structured(result: BaseModel, text: str | None = None, more: list[ContentBlock] | None = None) -> CallToolResult:
    shown = result.model_dump_json() if text is None else _valid(text)
    return CallToolResult(
        content=[TextContent(text=shown), *(more or [])], structured_content=result.model_dump(mode="json")
    )


def _executed(result: ExecutionResult) -> Executed:
    return Executed(
        kind=result.kind,
        exit_code=result.exit_code,
        stdout=_valid(result.stdout),
        stderr=_valid(result.stderr),
        value=None if result.value is None else _valid(result.value),
        files={_valid(name): len(data) for name, data in result.files.items()},
        host_calls=[
            HostCalled(
                name=_valid(call.name),
                status=call.status,
                url=None if call.fetch is None else _valid(call.fetch.final_url),
                reason=None if call.reason is None else _valid(call.reason),
            )
            for call in result.host_calls
        ],
        seconds=result.usage.seconds,
        truncated=result.truncated is not None,
    )


def _valid(text: str) -> str:
    """`text` without lone surrogates, which JSON over the wire cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
