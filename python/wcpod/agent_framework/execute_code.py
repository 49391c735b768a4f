"""`HyperlightExecuteCodeTool`: the tool `execute_code`, with what its code may use."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast

from agent_framework import (
    Content,
    FunctionInvocationContext,
    FunctionMiddlewareTypes,
    FunctionTool,
    MiddlewareFailure,
    normalize_tools,
)

from wcpod.agent_framework import configuration, instructions
from wcpod.agent_framework.configuration import (
    AllowedDomain,
    AllowedDomainInput,
    FileMount,
    FileMountInput,
    OutputLimits,
)
from wcpod.agent_framework.contents import contents_of, refusal
from wcpod.agent_framework.nested_calls import EXECUTION, NestedCalls, finished, forwarder
from wcpod.agent_framework.sandboxes import Sandboxes, Setup
from wcpod.codeact import EXECUTE_CODE
from wcpod.exceptions import WcpodError
from wcpod.sandbox import ExecutionResult, FetchLimits, HostCall, Limits, async_sandbox
from wcpod.sandbox.options import Folder, OnCall, SandboxOptions, check_options
from wcpod.sandbox.tools import ToolTable
from wcpod.telemetry import traced_host_calls

if TYPE_CHECKING:
    from typing_extensions import Unpack

ApprovalMode: TypeAlias = Literal["always_require", "never_require"]
ToolInput: TypeAlias = FunctionTool | Callable[..., Any]

_log = logging.getLogger(__name__)
_ARGUMENTS = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": "Python source to run."}},
    "required": ["code"],
}


class ExecuteCodeOptions(TypedDict, total=False):
    """What wcpod adds to the arguments of `agent-framework-hyperlight`. All are keywords, all may be left out."""

    limits: Limits | None
    """What each execution may use: seconds, memory, output, host calls."""
    fetch_limits: FetchLimits | None
    """Bounds of the fetches of one execution."""
    audit: Folder | None
    """File that gets a JSON line for each fetch."""
    archive: Folder | None
    """Folder of recorded pages that stands in for the network."""
    record: Folder | None
    """Folder that fetched pages are kept in."""
    contact: str | None
    """How a site can reach the operator."""
    on_call: OnCall | None
    """Called for each host call of the code when it has ended."""
    function_middleware: Sequence[FunctionMiddlewareTypes]
    """Further function middleware for calls that the code makes. The provider finds the agent's own by itself."""


class HyperlightExecuteCodeTool(FunctionTool):
    """Runs Python in a micro-VM, from a clean snapshot each time.

    Takes the arguments of the class of this name in `agent-framework-hyperlight`, and those of `ExecuteCodeOptions`.

    Args:
        tools: Functions and `FunctionTool`s that the code reaches with `call_tool(name, **kwargs)`.
        tool_description_format: "compact" or "json", for all tools or by name.
        approval_mode: "always_require" asks before each execution. So does any tool that wants approval.
        workspace_root: A folder that the code finds as /input, read again for each execution.
        file_mounts: Files and folders that the code finds below /input.
        allowed_domains: Hosts that `call_tool("fetch_url", url=...)` may fetch from, over https.
        max_output_files: Most files of /output that are handed back.
        max_output_file_bytes: Largest such file.
        max_output_total_bytes: Most bytes of all of them.
        backend, module, module_path: Their defaults are accepted. The guest is wcpod's own.
        options: Those of `ExecuteCodeOptions`.
    """

    def __init__(
        self,
        *,
        tools: ToolInput | Sequence[ToolInput] | None = None,
        tool_description_format: instructions.DescriptionFormat = "compact",
        approval_mode: ApprovalMode | None = None,
        workspace_root: str | Path | None = None,
        file_mounts: FileMountInput | Sequence[FileMountInput] | None = None,
        allowed_domains: AllowedDomainInput | Sequence[AllowedDomainInput] | None = None,
        max_output_files: int = 20,
        max_output_file_bytes: int = 5 * 1024 * 1024,
        max_output_total_bytes: int = 20 * 1024 * 1024,
        backend: str = "wasm",
        module: str | None = "python_guest.path",
        module_path: str | None = None,
        _sandboxes: Sandboxes | None = None,
        **options: Unpack[ExecuteCodeOptions],
    ) -> None:
        check_options(options, ExecuteCodeOptions, "an execute_code tool")
        _refuse_other_guests(backend, module, module_path)
        self._lock = threading.RLock()
        self._format = instructions.checked_format(tool_description_format)
        self._approval: ApprovalMode = approval_mode or "never_require"
        self._workspace = configuration.workspace(workspace_root)
        self._output = OutputLimits(
            configuration.positive("max_output_files", max_output_files),
            configuration.positive("max_output_file_bytes", max_output_file_bytes),
            configuration.positive("max_output_total_bytes", max_output_total_bytes),
        )
        self._guest = {"backend": backend, "module": module, "module_path": module_path}
        self._options = options
        self._sandboxes = _sandboxes or Sandboxes(_sandbox_options(options), forwarder)
        self._tools: dict[str, FunctionTool] = {}
        self._mounts: dict[str, FileMount] = {}
        self._domains: dict[str, AllowedDomain] = {}
        self._agent: str | None = None
        self._agents_middleware: Callable[[], Sequence[FunctionMiddlewareTypes]] = tuple
        super().__init__(name=EXECUTE_CODE, func=self._execute, input_model=_ARGUMENTS, approval_mode=self._approval)
        self.add_tools(tools or [])
        self.add_file_mounts(file_mounts or [])
        self.add_allowed_domains(allowed_domains or [])

    @property
    def description(self) -> str:
        """What the model reads of this tool: it follows what is added and removed."""
        with self._lock:
            return instructions.description(
                list(self._tools.values()),
                [mount.mount_path for mount in self.get_file_mounts()],
                self._workspace is not None,
                self.get_allowed_domains(),
                self._format,
            )

    @description.setter
    def description(self, value: str) -> None:
        """The framework sets one when a tool is made; this one is always written anew."""

    @property
    def host_call_counts(self) -> dict[str, int]:
        """How often the code of all executions called each host function, blocked and failed calls too."""
        return self._sandboxes.counts

    def add_tools(self, tools: ToolInput | Sequence[ToolInput]) -> None:
        """Adds tools for the code; one of the same name is replaced.

        Raises:
            ValueError: the name of one cannot be used.
        """
        added = _function_tools(tools)
        ToolTable({tool.name: forwarder(tool.name) for tool in added})
        with self._lock:
            for tool in added:
                self._tools.pop(tool.name, None)
                self._tools[tool.name] = tool
            self._refresh_approval_mode()

    def get_tools(self) -> list[FunctionTool]:
        """The tools for the code."""
        with self._lock:
            return list(self._tools.values())

    def remove_tool(self, name: str) -> None:
        """Removes a tool.

        Raises:
            KeyError: there is none of that name.
        """
        with self._lock:
            _remove(self._tools, name, f"there is no tool {name!r}")
            self._refresh_approval_mode()

    def clear_tools(self) -> None:
        """Removes all tools."""
        with self._lock:
            self._tools.clear()
            self._refresh_approval_mode()

    def add_file_mounts(self, file_mounts: FileMountInput | Sequence[FileMountInput]) -> None:
        """Adds files or folders below /input; one at the same place is replaced. A text is the path on both sides."""
        added = configuration.mounts_of(file_mounts)
        with self._lock:
            self._mounts.update({mount.mount_path: mount for mount in added})

    def get_file_mounts(self) -> list[FileMount]:
        """The mounts, with their paths as the code sees them."""
        with self._lock:
            return [mount._replace(mount_path=_shown(mount.mount_path)) for mount in self._mounts.values()]

    def remove_file_mount(self, mount_path: str) -> None:
        """Removes the mount at a path of the sandbox.

        Raises:
            KeyError: there is none.
        """
        with self._lock:
            _remove(self._mounts, configuration.mount_path(mount_path), f"there is no file mount at {mount_path!r}")

    def clear_file_mounts(self) -> None:
        """Removes all mounts."""
        with self._lock:
            self._mounts.clear()

    def add_allowed_domains(self, domains: AllowedDomainInput | Sequence[AllowedDomainInput]) -> None:
        """Adds hosts that may be fetched from.

        Raises:
            FetchPolicyError: a host cannot be allowed.
            ValueError: an entry allows no GET.
        """
        added = configuration.domains_of(domains)
        with self._lock:
            self._domains.update({domain.target: domain for domain in added})

    def get_allowed_domains(self) -> list[AllowedDomain]:
        """The hosts that may be fetched from, sorted."""
        with self._lock:
            return sorted(self._domains.values(), key=lambda domain: domain.target)

    def remove_allowed_domain(self, domain: str) -> None:
        """Removes a host.

        Raises:
            KeyError: it was not allowed.
        """
        with self._lock:
            _remove(self._domains, configuration.domain_name(domain), f"there is no allowed domain {domain!r}")

    def clear_allowed_domains(self) -> None:
        """Removes all hosts: no network."""
        with self._lock:
            self._domains.clear()

    def build_instructions(self, *, tools_visible_to_model: bool) -> str:
        """Instructions for an agent that has this tool."""
        return instructions.instructions(tools_visible_to_model=tools_visible_to_model)

    def create_run_tool(self) -> HyperlightExecuteCodeTool:
        """A copy for one run of an agent, which later changes do not reach. It shares the sandboxes."""
        with self._lock:
            return HyperlightExecuteCodeTool(
                tools=self.get_tools(),
                tool_description_format=self._format,
                approval_mode=self._approval,
                workspace_root=self._workspace,
                file_mounts=list(self._mounts.values()),
                allowed_domains=self.get_allowed_domains(),
                max_output_files=self._output.files,
                max_output_file_bytes=self._output.file_bytes,
                max_output_total_bytes=self._output.total_bytes,
                **cast(dict[str, Any], self._guest),
                _sandboxes=self._sandboxes,
                **self._options,
            )

    def build_serializable_state(self) -> dict[str, Any]:
        """What this tool is set up with, as JSON can hold it."""
        with self._lock:
            mounts, domains = self.get_file_mounts(), self.get_allowed_domains()
            return {
                **self._guest,
                "approval_mode": self.approval_mode,
                "max_output_files": self._output.files,
                "max_output_file_bytes": self._output.file_bytes,
                "max_output_total_bytes": self._output.total_bytes,
                "tool_names": list(self._tools),
                "tool_description_format": dict(self._format) if isinstance(self._format, Mapping) else self._format,
                "filesystem_enabled": self._workspace is not None or bool(mounts),
                "workspace_root": None if self._workspace is None else str(self._workspace),
                "file_mounts": [
                    {"host_path": str(mount.host_path), "mount_path": mount.mount_path} for mount in mounts
                ],
                "network_enabled": bool(domains),
                "allowed_domains": [
                    {"target": domain.target, "methods": None if domain.methods is None else list(domain.methods)}
                    for domain in domains
                ],
                "limits": _limits(self._options.get("limits") or Limits()),
            }

    def to_dict(self, *, exclude: set[str] | None = None, exclude_none: bool = True) -> dict[str, Any]:
        """As of any `FunctionTool`, with the description as it is now."""
        return {**super().to_dict(exclude=exclude, exclude_none=exclude_none), "description": self.description}

    def belong_to(
        self, agent: str | None, function_middleware: Callable[[], Sequence[FunctionMiddlewareTypes]]
    ) -> None:
        """Attributes the calls of the code to an agent, and lets them pass its function middleware."""
        self._agent, self._agents_middleware = agent, function_middleware

    def close(self) -> None:
        """Gives the micro-VMs back, those of all copies; an execution under way is cancelled."""
        self._sandboxes.close()

    def _refresh_approval_mode(self) -> None:
        wanted = {self._approval, *(tool.approval_mode for tool in self._tools.values())}
        self.approval_mode = "always_require" if "always_require" in wanted else "never_require"

    async def _execute(self, code: str, context: FunctionInvocationContext) -> list[Content]:
        with self._lock:
            tools, root, mounts = dict(self._tools), self._workspace, list(self._mounts.values())
            hosts = tuple(domain.target for domain in self.get_allowed_domains())
        try:
            inputs = await asyncio.to_thread(configuration.read_inputs, root, mounts)
        except (OSError, ValueError) as error:
            return refusal(str(error))
        outer = EXECUTION.get()
        calls = NestedCalls(
            tools=tools,
            approved=self.approval_mode == "always_require",
            context=context,
            middleware=[*self._agents_middleware(), *self._options.get("function_middleware", ())],
            depth=0 if outer is None else outer.depth + 1,
        )
        setup = Setup(tuple(sorted(tools)), hosts, calls.depth)
        try:
            result = await finished(asyncio.ensure_future(self._run(code, inputs, setup, calls)), calls)
        except WcpodError as error:
            # An ordinary exception would become "Error: Function failed." and the model would go on without a sandbox.
            raise MiddlewareFailure(f"execute_code: {error}") from error
        except ValueError as error:  # code and inputs are too large, or a name is none
            return refusal(str(error))
        return contents_of(result, self._output)

    async def _run(self, code: str, inputs: dict[str, bytes], setup: Setup, calls: NestedCalls) -> ExecutionResult:
        EXECUTION.set(calls)
        async with self._sandboxes.sandbox(setup) as sandbox:
            result = await async_sandbox.run(
                sandbox,
                code,
                {"inputs": inputs, "on_call": self._listener()},
                session=sandbox._new_session(),
                agent=self._agent,
            )
        for call in result.host_calls:  # of calls over the limit only the first was told of
            self._sandboxes.count(call.name, call.count - 1)
        return result

    def _listener(self) -> OnCall:
        """Counts each call. A fetch gets a span here; calls of tools have the framework's."""
        on_call = self._options.get("on_call")

        def count(call: HostCall) -> None:
            self._sandboxes.count(call.name, 1)
            if on_call is not None:
                on_call(call)

        traced = traced_host_calls(count) or count
        return lambda call: traced(call) if call.fetch is not None else count(call)


def _refuse_other_guests(backend: str, module: str | None, module_path: str | None) -> None:
    if backend != "wasm" or module not in (None, "python_guest.path") or module_path is not None:
        raise ValueError(
            f"wcpod runs its own guest: backend={backend!r}, module={module!r}, module_path={module_path!r} "
            "cannot be had; leave them out"
        )


def _sandbox_options(options: ExecuteCodeOptions) -> SandboxOptions:
    own = ("on_call", "function_middleware")
    return cast(SandboxOptions, {name: value for name, value in options.items() if name not in own})


def _function_tools(tools: ToolInput | Sequence[ToolInput]) -> list[FunctionTool]:
    """Callables as `FunctionTool`s. Tools that only a model's service can run are left out, with a warning."""
    found = []
    for tool in normalize_tools(tools):
        if not isinstance(tool, FunctionTool):
            _log.warning("a tool of the type %s cannot be called from the sandbox: left out", type(tool).__name__)
        elif tool.name != EXECUTE_CODE:
            found.append(tool)
    return found


def _remove(table: dict[str, Any], key: str, missing: str) -> None:
    if key not in table:
        raise KeyError(missing)
    del table[key]


def _shown(path: str) -> str:
    return f"{configuration.INPUT}/{path}"


def _limits(limits: Limits) -> dict[str, Any]:
    values = dataclasses.asdict(limits)
    return {name: None if value == math.inf else value for name, value in values.items()}
