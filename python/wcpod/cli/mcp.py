"""`wcpod mcp`: sandboxes for clients of the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from wcpod.cli.exit_codes import NOT_CONFIGURED, fail
from wcpod.cli.options import LimitsOption, allow_host_option, archive_option, contact_option, limits_of
from wcpod.exceptions import FetchPolicyError


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
def mcp(
    hosts: tuple[str, ...],
    archive: Path | None,
    contact: str | None,
    limits: dict[str, float] | None,
    sandboxes: int,
    idle: float,
) -> None:
    """Serve sandboxes over the Model Context Protocol, on standard input and output.

    Three tools: create_sandbox, execute_in_sandbox, destroy_sandbox. A client can ask for lower limits than these, and
    never for more. It ends when the client closes its end, and destroys every sandbox.

    \b
    Example:
      wcpod mcp
      wcpod mcp --allow-host www.bbc.com --limits seconds=10,memory_mib=128

    \b
    Exit codes:
      0 the client is gone            2 wrong options           5 package missing
    """
    try:
        from wcpod.mcp_server import Terms, build_server
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
    server.run()
