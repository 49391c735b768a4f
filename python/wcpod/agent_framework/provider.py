"""`HyperlightCodeActProvider`: gives an agent `execute_code` and its instructions, before each run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_framework import (
    AgentSession,
    ContextProvider,
    FunctionInvocationContext,
    FunctionTool,
    SessionContext,
    SupportsAgentRun,
    function_middleware,
)

from wcpod.agent_framework.configuration import AllowedDomain, AllowedDomainInput, FileMount, FileMountInput
from wcpod.agent_framework.execute_code import (
    ApprovalMode,
    ExecuteCodeOptions,
    HyperlightExecuteCodeTool,
    ToolInput,
)
from wcpod.agent_framework.instructions import DescriptionFormat
from wcpod.agent_framework.nested_calls import middleware_of
from wcpod.codeact import EXECUTE_CODE
from wcpod.model_arguments import explain_arguments, keep_arguments_readable

if TYPE_CHECKING:
    from typing_extensions import Unpack


class HyperlightCodeActProvider(ContextProvider):
    """Gives an agent `execute_code`; the tools, mounts and domains of the provider are reachable from its code alone.

    Takes the arguments of the class of this name in `agent-framework-hyperlight`, and those of `ExecuteCodeOptions`.
    For what they mean see `HyperlightExecuteCodeTool`.
    """

    DEFAULT_SOURCE_ID = "hyperlight_codeact"

    def __init__(
        self,
        source_id: str = DEFAULT_SOURCE_ID,
        *,
        tools: ToolInput | Sequence[ToolInput] | None = None,
        tool_description_format: DescriptionFormat = "compact",
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
        **options: Unpack[ExecuteCodeOptions],
    ) -> None:
        super().__init__(source_id)
        self._tool = HyperlightExecuteCodeTool(
            tools=tools,
            tool_description_format=tool_description_format,
            approval_mode=approval_mode,
            workspace_root=workspace_root,
            file_mounts=file_mounts,
            allowed_domains=allowed_domains,
            max_output_files=max_output_files,
            max_output_file_bytes=max_output_file_bytes,
            max_output_total_bytes=max_output_total_bytes,
            backend=backend,
            module=module,
            module_path=module_path,
            **options,
        )

    @property
    def host_call_counts(self) -> dict[str, int]:
        """As `HyperlightExecuteCodeTool.host_call_counts`."""
        return self._tool.host_call_counts

    def add_tools(self, tools: ToolInput | Sequence[ToolInput]) -> None:
        """Adds tools for the code, from the next run on; one of the same name is replaced."""
        self._tool.add_tools(tools)

    def get_tools(self) -> list[FunctionTool]:
        """The tools for the code."""
        return self._tool.get_tools()

    def remove_tool(self, name: str) -> None:
        """Removes a tool; KeyError if there is none of that name."""
        self._tool.remove_tool(name)

    def clear_tools(self) -> None:
        """Removes all tools."""
        self._tool.clear_tools()

    def add_file_mounts(self, file_mounts: FileMountInput | Sequence[FileMountInput]) -> None:
        """Adds files or folders below /input."""
        self._tool.add_file_mounts(file_mounts)

    def get_file_mounts(self) -> list[FileMount]:
        """The mounts, with their paths as the code sees them."""
        return self._tool.get_file_mounts()

    def remove_file_mount(self, mount_path: str) -> None:
        """Removes the mount at a path of the sandbox; KeyError if there is none."""
        self._tool.remove_file_mount(mount_path)

    def clear_file_mounts(self) -> None:
        """Removes all mounts."""
        self._tool.clear_file_mounts()

    def add_allowed_domains(self, domains: AllowedDomainInput | Sequence[AllowedDomainInput]) -> None:
        """Adds hosts that may be fetched from."""
        self._tool.add_allowed_domains(domains)

    def get_allowed_domains(self) -> list[AllowedDomain]:
        """The hosts that may be fetched from, sorted."""
        return self._tool.get_allowed_domains()

    def remove_allowed_domain(self, domain: str) -> None:
        """Removes a host; KeyError if it was not allowed."""
        self._tool.remove_allowed_domain(domain)

    def clear_allowed_domains(self) -> None:
        """Removes all hosts: no network."""
        self._tool.clear_allowed_domains()

    def close(self) -> None:
        """Gives the micro-VMs back; an execution under way is cancelled."""
        self._tool.close()

    async def before_run(  # the framework passes all of them by name
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession | None,  # noqa: ARG002
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Adds the instructions and an `execute_code` of this run's own."""
        run_tool = self._tool.create_run_tool()
        run_tool.belong_to(getattr(agent, "name", None), lambda: middleware_of(agent, context))
        state[self.source_id] = run_tool.build_serializable_state()
        context.extend_instructions(self.source_id, run_tool.build_instructions(tools_visible_to_model=False))
        context.extend_tools(self.source_id, [run_tool])
        context.extend_middleware(self.source_id, [keep_arguments_readable, _explain_arguments])


@function_middleware
async def _explain_arguments(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
    """A call of `execute_code` whose arguments do not fit is answered with what is wrong with them."""
    if context.function.name == EXECUTE_CODE:
        await explain_arguments(context, call_next)
    else:
        await call_next()
