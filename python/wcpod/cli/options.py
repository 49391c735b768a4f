"""Options that several commands share, each with one name, meaning and help text."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from wcpod.exceptions import FetchPolicyError

if TYPE_CHECKING:
    from wcpod import Limits
    from wcpod.podcast.models import Model
    from wcpod.podcast.show import Show

Command = TypeVar("Command", bound=Callable[..., object])


class ArchiveOption(click.Path):
    """A folder of recorded pages."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False, exists=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The folder, or an error that says how one is made."""
        folder = cast("Path", super().convert(value, param, ctx))
        if not (folder / "index.jsonl").is_file():
            self.fail(f"{folder} is no archive: it has no index.jsonl. `wcpod run --record` makes one.", param, ctx)
        return folder


class DayOption(click.ParamType[dt.date]):
    """A day, as 2026-06-15 or 260615."""

    name = "YYYY-MM-DD"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dt.date:
        """The day. Names of folders have two digits for the year, so there are the days of one century."""
        if isinstance(value, dt.date):
            return value
        found = re.fullmatch(r"(?:(\d{4})-(\d\d)-(\d\d)|(\d\d)(\d\d)(\d\d))", str(value), re.ASCII)
        try:
            year, month, date = (int(part) for part in found.groups() if part) if found else (0, 0, 0)
            day = dt.date(year + 2000 if year < 100 else year, month, date)
        except ValueError:
            self.fail(f"{value!r} is not a day such as 2026-06-15", param, ctx)
        if not 2000 <= day.year < 2100:
            self.fail(f"{value} is not in the years 2000 to 2099", param, ctx)
        return day


_ARCHIVE = ArchiveOption()
_ARCHIVE_HELP = "Read pages from this folder instead of the network."

_model_option = click.option(
    "--model",
    "kind",
    type=click.Choice(["rehearsal", "foundry", "openai"]),
    default="rehearsal",
    show_default=True,
    help="Who writes. rehearsal: a scripted stand-in on sample pages, and it says so everywhere.",
)
_model_name_option = click.option("--model-name", help="Deployment or model. Default: $FOUNDRY_MODEL or $OPENAI_MODEL.")
_base_url_option = click.option("--base-url", help="Server for --model openai, for example http://127.0.0.1:8000/v1.")
_show_option = click.option(
    "--show",
    "show_place",
    metavar="PATH|NAME",
    help="What the episode is about: a folder, or a show that comes with wcpod (wcpod show list).",
)
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("outputs"),
    show_default=True,
    help="Folder that holds one folder a day.",
)
force_option = click.option("--force", is_flag=True, help="Write a day again that already has an episode.")
allow_host_option = click.option(
    "--allow-host", "hosts", multiple=True, help="Host that fetch_url may read. Default: none."
)
archive_option = click.option("--archive", type=_ARCHIVE, help=_ARCHIVE_HELP)
_rehearsal_archive_option = click.option(
    "--archive", type=_ARCHIVE, help=f"{_ARCHIVE_HELP} Default for a rehearsal: the sample pages."
)


def pipeline_options(command: Command) -> Command:
    """What every command that runs the pipeline asks for: who writes, where to, and from which pages."""
    options = (
        _show_option,
        _model_option,
        _model_name_option,
        _base_url_option,
        out_option,
        _rehearsal_archive_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def chosen_show(place: str | None) -> Show:
    """The show that `--show` names, or the default one.

    Raises:
        ShowError: if there is none, or its files are wrong.
    """
    from wcpod.podcast.show import default_show, find_show

    return default_show() if place is None else find_show(place)


def pages_for(model: Model, show: Show, archive: Path | None) -> Path | None:
    """The archive to read instead of the network, if any: a rehearsal reads the show's sample pages."""
    return archive or (show.sample_pages if model.rehearsal else None)


def _contact(_context: click.Context, _parameter: click.Parameter, contact: str | None) -> str | None:
    from wcpod.sandbox.policy import check_contact

    try:
        return None if contact is None else check_contact(contact)
    except FetchPolicyError as error:
        raise click.BadParameter(str(error)) from None


contact_option = click.option(
    "--contact",
    callback=_contact,
    envvar="WCPOD_CONTACT",
    show_envvar=True,
    help="How a site can reach you, for example ops@example.org. Goes to every site that is read, in the user agent.",
)


_LIMIT_TYPES: dict[str, type] = {"seconds": float, "memory_mib": int, "output_bytes": int, "host_calls": int}


class LimitsOption(click.ParamType[dict[str, float]]):
    """`seconds=10,host_calls=20` as a dict of the limits that were named."""

    name = "NAME=N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, float]:
        """Parse the text, or fail with the names that there are."""
        if isinstance(value, dict):
            return value
        limits: dict[str, float] = {}
        for item in str(value).split(","):
            name, _, number = item.partition("=")
            try:
                limits[name.strip()] = _LIMIT_TYPES[name.strip()](number)
            except (KeyError, ValueError):
                self.fail(f"{item!r} is not one of {', '.join(f'{key}=N' for key in _LIMIT_TYPES)}", param, ctx)
        return limits


def limits_of(named: Mapping[str, Any]) -> Limits:
    """The limits, or a usage error that says what is wrong with them."""
    from wcpod import Limits

    try:
        return Limits(**named)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
