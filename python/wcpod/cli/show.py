"""`wcpod show`: the shows that there are, a new one, and whether one is right."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click

from wcpod.cli.exit_codes import FAILED, NOT_CONFIGURED, fail
from wcpod.exceptions import ModelNotConfigured, PipelineError

_NEEDS_MORE = "The podcast needs more packages: pip install 'wcpod[podcast]'"


@click.group()
def show() -> None:
    """Shows: a show is a folder that says what an episode is about, where it may read, and what its script must be.

    \b
    Example:
      wcpod show list
      wcpod show new my-show
      wcpod show check my-show
      wcpod run --show my-show

    \b
    Exit codes:
      0 done               1 the show is wrong, or cannot be made
      2 wrong options      5 package missing
    """


@show.command("list")
def list_() -> None:
    """The shows that come with wcpod."""
    try:
        from wcpod.podcast.show import load_show
        from wcpod.shows import DEFAULT_SHOW, shipped_shows
    except ImportError as error:
        fail(f"{error}. {_NEEDS_MORE}", NOT_CONFIGURED)
    for name, folder in shipped_shows().items():
        default = " (default)" if name == DEFAULT_SHOW else ""
        click.echo(f"{name}{default}: {load_show(folder).topic}")


@show.command()
@click.argument("folder", type=click.Path(path_type=Path))
def new(folder: Path) -> None:
    """Make FOLDER: a small show that is right and can be rehearsed at once, to be changed into yours."""
    try:
        from wcpod.podcast.show import new_show
    except ImportError as error:
        fail(f"{error}. {_NEEDS_MORE}", NOT_CONFIGURED)
    try:
        made = new_show(folder)
    except PipelineError as error:
        fail(str(error), FAILED)
    click.echo(f"{made}\nTo try it: wcpod run --show {made}")


@show.command()
@click.argument("place", metavar="PATH|NAME")
def check(place: str) -> None:
    """Say whether a show is right: show.toml, skills, rehearsal, sample pages. A line for each thing that is not."""
    try:
        from wcpod.podcast.rehearsal.phrases import phrases_of
        from wcpod.podcast.show import find_show
        from wcpod.podcast.skills import check_skills
    except ImportError as error:
        fail(f"{error}. {_NEEDS_MORE}", NOT_CONFIGURED)
    try:
        found = find_show(place)
        check_skills(found)
    except PipelineError as error:
        fail(str(error), FAILED)
    rehearsal = "can be rehearsed"
    try:
        phrases_of(found)
    except ModelNotConfigured as missing:
        rehearsal = str(missing)
    except PipelineError as error:
        fail(str(error), FAILED)
    today = dt.date.today()
    click.echo(f"{found.name}: {found.title.simplified}, {found.topic}")
    click.echo(f"reads {', '.join(found.pages.hosts)}; starts at {', '.join(found.pages.start)}")
    click.echo(f"{len(found.names)} names, {len(found.facts_on(today))} of {len(found.facts)} facts hold today")
    if note := found.out_of_season(today):
        click.echo(f"today is out of season: {note}")
    click.echo(rehearsal)
