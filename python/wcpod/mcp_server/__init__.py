"""Sandboxes for any client of the Model Context Protocol. Needs the extra `mcp`.

    run_python(code, timeout, files) → result
    create_sandbox → sandbox_id        execute_in_sandbox(sandbox_id, code) → result        destroy_sandbox(sandbox_id)

`tenancy` holds the sandboxes, `tools` what a client may call, `output_files` what code left for it; `stdio` and `http`
carry the messages. Whoever starts the server decides what a client may use: hosts, the largest limits, how many
sandboxes at once, and how long one may stand idle. A client can ask for less.
"""

from wcpod.mcp_server.server import build_server
from wcpod.mcp_server.tenancy import Terms

__all__ = ["Terms", "build_server"]
