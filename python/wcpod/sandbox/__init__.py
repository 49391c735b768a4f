"""The sandbox: knows the micro-VM, and no agent library."""

from wcpod.sandbox.async_sandbox import AsyncSandbox
from wcpod.sandbox.limits import Limits
from wcpod.sandbox.page import extract_page
from wcpod.sandbox.policy import Decision, FetchPolicy
from wcpod.sandbox.result import ExecutionResult, FetchRecord, HostCall, Isolation, Truncated, Usage
from wcpod.sandbox.runtime import HyperlightRuntime
from wcpod.sandbox.sandbox import Sandbox

__all__ = [
    "AsyncSandbox",
    "Decision",
    "ExecutionResult",
    "FetchPolicy",
    "FetchRecord",
    "HostCall",
    "HyperlightRuntime",
    "Isolation",
    "Limits",
    "Sandbox",
    "Truncated",
    "Usage",
    "extract_page",
]
