"""`wcpod report`: the page of a day's episode."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click

from wcpod.cli.exit_codes import FAILED, NOT_CONFIGURED, fail
from wcpod.cli.options import DayOption, out_option
from wcpod.exceptions import PipelineError


@click.command()
@click.argument("day", type=DayOption(), required=False, metavar="[DAY]")
@out_option
@click.option(
    "--to",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="File to write, - for standard output. Default: in the folder of the day.",
)
def report(day: dt.date | None, out: Path, to: Path | None) -> None:
    """Make the report of DAY (default: today): one HTML page that needs no network and runs no script.

    Both scripts side by side, the sources, a picture of what happened when, the counters, and the code of each agent.

    \b
    Example:
      wcpod report 2026-06-15
      wcpod report 260615 --to /tmp/report.html

    \b
    Exit codes:
      0 written            1 no such episode                5 package missing
    """
    try:
        from wcpod.podcast.day_folder import DayFolder
        from wcpod.podcast.file_exchange import exchange_files
        from wcpod.podcast.report import report_of
    except ImportError as error:
        fail(f"{error}. The podcast needs more packages: pip install 'wcpod[podcast]'", NOT_CONFIGURED)

    folder = DayFolder(out, day or dt.date.today())
    try:
        page = report_of(folder).encode()
        if to == Path("-"):
            click.echo(page, nl=False)
            return
        target = to or folder.report
        exchange_files(target.parent, {target.name: page})
    except PipelineError as error:
        fail(str(error), FAILED)
    except OSError as error:
        fail(f"cannot write the report: {error.strerror}", FAILED)
    click.echo(target)
