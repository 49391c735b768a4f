"""`wcpod mcp`: sandboxes for clients of the Model Context Protocol."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wcpod.cli.exit_codes import FAILED, NOT_CONFIGURED, fail
from wcpod.cli.options import LimitsOption, allow_host_option, archive_option, contact_option, limits_of
from wcpod.exceptions import FetchPolicyError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server


@click.command()
@allow_host_option
@archive_option
@contact_option
@click.option("--limits", type=LimitsOption(), help="Largest limits of an execution, for example seconds=10.")
@click.option("--sandboxes", type=click.IntRange(min=1), default=4, show_default=True, help="Most sandboxes at once.")
@click.option(
    "--idle",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    help="Seconds after which an unused sandbox is destroyed.",
)
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    help="Serve streamable HTTP on this port of 127.0.0.1 instead of standard input and output; 0 is a free one.",
)
@click.option(
    "--token",
    envvar="WCPOD_MCP_TOKEN",
    show_envvar=True,
    help="With --http: the bearer token that clients present. Default: a new one, printed at the start.",
)
def mcp(
    hosts: tuple[str, ...],
    archive: Path | None,
    contact: str | None,
    limits: dict[str, float] | None,
    sandboxes: int,
    idle: float,
    port: int | None,
    token: str | None,
) -> None:
    """Serve sandboxes over the Model Context Protocol, on standard input and output.

    run_python runs code once; create_sandbox, execute_in_sandbox and destroy_sandbox keep limits of their own. A client
    can ask for lower limits than these, and never for more. It ends when the client closes its end, at Ctrl-C and at
    SIGTERM, and destroys every sandbox.

    \b
    Example:
      wcpod mcp
      wcpod mcp --allow-host www.example.org --limits seconds=10,memory_mib=128
      wcpod mcp --http 8765

    \b
    Exit codes:
      0 the client is gone, or interrupted   1 the port is taken   2 wrong options   5 package missing
    """
    try:
        from wcpod.mcp_server import Terms, build_server
        from wcpod.mcp_server.stdio import serve_stdio
    except ImportError as error:
        fail(f"{error}. The server needs more packages: pip install 'wcpod[mcp]'", NOT_CONFIGURED)
    terms = Terms(
        limits=limits_of(limits or {}),
        hosts=hosts,
        archive=archive,
        contact=contact,
        sandboxes=sandboxes,
        idle_seconds=idle,
    )
    try:
        server = build_server(terms)
    except FetchPolicyError as error:
        raise click.UsageError(str(error)) from None
    if port is None:
        serve_stdio(server)
    else:
        _serve_http(server, port, token or secrets.token_urlsafe(24))


def _serve_http(server: Server[Any], port: int, token: str) -> None:
    from wcpod.mcp_server.http import HOST, PATH, listen, serve_http

    try:
        listening = listen(port)
    except OSError as error:
        fail(f"cannot listen on {HOST}:{port}: {os.strerror(error.errno or 0)}", FAILED)
    click.echo(f"http://{HOST}:{listening.getsockname()[1]}{PATH}  token: {token}")
    serve_http(server, listening=listening, token=token)
