"""`wcpod days`: what was made, what failed and why."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from wcpod.cli.exit_codes import NOT_CONFIGURED, fail
from wcpod.cli.options import out_option
from wcpod.control_characters import neutralise


@click.command()
@out_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a day.")
def days(out: Path, as_json: bool) -> None:
    """List the days of OUT: what was made, what failed and why, and what can go on with --resume.

    \b
    Example:
      wcpod days
      wcpod days --out /srv/podcast --json

    \b
    Exit codes:
      0 listed, also if there is nothing        5 package missing
    """
    try:
        from wcpod.podcast.days import days_of
    except ImportError as error:
        fail(f"{error}. The podcast needs more packages: pip install 'wcpod[podcast]'", NOT_CONFIGURED)
    found = days_of(out)
    if not found and not as_json:
        click.echo(f"there is no day in {out}")
    for day in found:
        if as_json:
            click.echo(json.dumps(dataclasses.asdict(day), default=str))
            continue
        line = "  ".join(part for part in (str(day.day), f"{day.state:10}", day.show, day.about) if part)
        click.echo(neutralise(line).rstrip())
        if day.failure:
            for text in neutralise(day.failure).splitlines():
                click.echo(f"            {text}")
        if day.resumable:
            click.echo("            can go on: the same command with --resume")
