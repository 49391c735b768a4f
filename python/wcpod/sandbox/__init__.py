"""The sandbox: knows the micro-VM, and no agent library."""

from wcpod.sandbox.async_sandbox import AsyncSandbox
from wcpod.sandbox.limits import FetchLimits, Limits
from wcpod.sandbox.page import extract_page
from wcpod.sandbox.policy import Decision, FetchPolicy
from wcpod.sandbox.pool import AsyncSandboxPool, SandboxPool
from wcpod.sandbox.result import ExecutionResult, FetchRecord, HostCall, Isolation, Truncated, Usage
from wcpod.sandbox.runtime import HyperlightRuntime
from wcpod.sandbox.sandbox import Sandbox
from wcpod.sandbox.snapshot import Snapshot

__all__ = [
    "AsyncSandbox",
    "AsyncSandboxPool",
    "Decision",
    "ExecutionResult",
    "FetchLimits",
    "FetchPolicy",
    "FetchRecord",
    "HostCall",
    "HyperlightRuntime",
    "Isolation",
    "Limits",
    "Sandbox",
    "SandboxPool",
    "Snapshot",
    "Truncated",
    "Usage",
    "extract_page",
]
