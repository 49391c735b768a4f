"""The command line: one file for each command, shared options in `options`. Exit codes are in each command's `--help`.

Only click is imported here; a command imports what it needs when it runs.
"""

from __future__ import annotations

import sys

import click

from wcpod.cli import days, devui, doctor, mcp, report, run, show
from wcpod.cli import exec as exec_
from wcpod.cli.exit_codes import fail
from wcpod.cli.interruption import interrupted, treat_sigterm_as_ctrl_c
from wcpod.cli.standard_streams import make_standard_streams_lossy

__all__ = ["cli", "main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="wcpod", message="wcpod %(version)s")
def cli() -> None:
    """Run model-written Python in a Hyperlight micro-VM, and a daily podcast on top of it.

    \b
    wcpod run              write today's script (a rehearsal, without network or model)
    wcpod show             list, make and check shows: what an episode is about
    wcpod days             list what was made, what failed and why
    wcpod report           make the page that shows how it was written
    wcpod devui            watch it in Agent Framework's DevUI
    wcpod exec hello.py    run one Python file in the micro-VM
    wcpod mcp              serve sandboxes to any MCP client
    wcpod doctor           check this machine
    """


for command in (run.run, show.show, days.days, report.report, devui.devui, exec_.execute, mcp.mcp, doctor.doctor):
    cli.add_command(command)


def main() -> None:
    """Entry point of the `wcpod` command."""
    make_standard_streams_lossy()
    try:
        treat_sigterm_as_ctrl_c()
        sys.exit(cli(prog_name="wcpod", standalone_mode=False))
    except (click.Abort, KeyboardInterrupt):
        fail(*interrupted())
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
