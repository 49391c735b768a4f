"""Run Python that a model wrote, in a micro-VM, from a clean snapshot, with one typed way out.

from wcpod import FetchPolicy, Limits, Sandbox

with Sandbox(limits=Limits(seconds=5.0), policy=FetchPolicy.bbc()) as sandbox:
    result = sandbox.run("print(1)")
"""

import logging
import warnings

from wcpod._bridge import DEBUG_BUILD, VERSION
from wcpod.sandbox import (
    AsyncSandbox,
    AsyncSandboxPool,
    Decision,
    ExecutionResult,
    FetchLimits,
    FetchPolicy,
    FetchRecord,
    HostCall,
    HyperlightRuntime,
    Isolation,
    Limits,
    Sandbox,
    SandboxPool,
    Snapshot,
    Truncated,
    Usage,
    extract_page,
)

__version__ = VERSION
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

logging.getLogger("wcpod").addHandler(logging.NullHandler())

if DEBUG_BUILD:
    warnings.warn("wcpod was built without optimisation: its times mean nothing", RuntimeWarning, stacklevel=2)
