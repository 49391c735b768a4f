"""`execute_code` for Microsoft Agent Framework under the names of `agent-framework-hyperlight`, on wcpod's sandbox.

A program of theirs runs with its import changed:

    from wcpod.agent_framework import HyperlightCodeActProvider

What wcpod adds: limits of each execution, a guest that stops when its task is cancelled, counters, an audit file, and
calls of the code that pass the agent's function middleware. Needs the extra `agents`.
"""

from wcpod.agent_framework.configuration import AllowedDomain, AllowedDomainInput, FileMount, FileMountInput
from wcpod.agent_framework.execute_code import ExecuteCodeOptions, HyperlightExecuteCodeTool
from wcpod.agent_framework.provider import HyperlightCodeActProvider

__all__ = [
    "AllowedDomain",
    "AllowedDomainInput",
    "ExecuteCodeOptions",
    "FileMount",
    "FileMountInput",
    "HyperlightCodeActProvider",
    "HyperlightExecuteCodeTool",
]
