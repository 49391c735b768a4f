"""`wcpod run`: write the day's script."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from zoneinfo import ZoneInfo

import click

from wcpod.cli.exit_codes import (
    DAY_EXISTS,
    FAILED,
    NO_SANDBOX,
    NOT_CONFIGURED,
    NOT_PUBLISHABLE,
    SERVICE_FAILED,
    USAGE,
    fail,
)
from wcpod.cli.interruption import interrupted
from wcpod.cli.model_options import model_options
from wcpod.cli.options import (
    DayOption,
    LimitsOption,
    chosen_show,
    contact_option,
    force_option,
    limits_of,
    pages_for,
    pipeline_options,
)
from wcpod.exceptions import (
    GuestImageError,
    HypervisorUnavailable,
    ModelError,
    ModelNotConfigured,
    ModelRefused,
    ModelUnavailable,
    SandboxError,
    ScriptFormatError,
    ShowError,
    SkillError,
    WcpodError,
)

if TYPE_CHECKING:
    from wcpod import HyperlightRuntime, Limits
    from wcpod.podcast.event_lines import EventLines
    from wcpod.podcast.models import Model
    from wcpod.podcast.progress import Event, Listener
    from wcpod.podcast.run import Episode
    from wcpod.podcast.show import Show


def _length(
    _context: click.Context, _parameter: click.Parameter, length: tuple[int, int] | None
) -> tuple[int, int] | None:
    if length is None:
        return None
    shortest, longest = length
    if longest < max(shortest, 1):
        raise click.BadParameter(f"the most ({longest}) must be at least the fewest ({shortest}), and 1")
    return length


@click.command()
@click.option("--date", "day", type=DayOption(), help="Day of the episode. Default: today where the listeners are.")
@pipeline_options
@model_options
@click.option("--record", type=click.Path(path_type=Path, file_okay=False), help="Keep every page read in this folder.")
@contact_option
@click.option(
    "--skills",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Skills to use instead of the show's.",
)
@click.option(
    "--length",
    nargs=2,
    type=click.IntRange(min=0),
    default=None,
    metavar="MIN MAX",
    callback=_length,
    help="Fewest and most Han characters of the script. Default: as the show says.",
)
@click.option("--limits", type=LimitsOption(), help="Limits of each execution, for example seconds=10,host_calls=20.")
@force_option
@click.option(
    "--base-address",
    envvar="WCPOD_BASE_ADDRESS",
    show_envvar=True,
    help="Where OUT is published, for example https://example.org/podcast. Adds an RSS feed over all days.",
)
@click.option("--audio", help="Audio plug-in that reads the script aloud. None comes with wcpod.")
@click.option("--resume", is_flag=True, help="Go on after the last finished step of a run that was cut off, if any.")
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write OpenTelemetry spans to this file. $OTEL_EXPORTER_OTLP_ENDPOINT sends them to a collector.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what happens as one JSON object a line.")
def run(**values: Any) -> None:
    """Write the day's script: two text files, show notes and episode.json under OUT/YYMMDD.

    Nothing appears before everything has worked, and an existing episode is kept unless --force is given. A rehearsal
    may always be replaced, and never replaces an episode of a real model.

    After each step a checkpoint is kept beside the day's folder until the episode is saved. When a run was cut off,
    the same command with --resume asks no agent again that was done.

    \b
    Example:
      wcpod run --date 2026-06-15
      wcpod run --date 2026-06-15 --resume
      wcpod run --show my-show
      wcpod run --model foundry
      wcpod run --model openai --base-url http://127.0.0.1:8000/v1 --model-name qwen3

    \b
    Exit codes:
      0 written            1 failed in another way         2 wrong options
      3 the day exists     4 no usable sandbox              5 settings: a show, skill, model, key, address or package
      6 the model's service failed; try again later         7 what the model wrote cannot be published
      130 interrupted      143 terminated (SIGTERM)
    Nothing was changed, unless it is 0.
    """
    options = RunOptions(**values)
    day = options.day or _today(options)
    from wcpod.podcast.event_lines import EventLines

    teller = _Teller(EventLines(sys.stdout) if options.as_json else None)
    try:
        _boot_early(limits_of(options.limits or {}))
        episode = _write_episode(options, day, teller)
    except ImportError as error:
        message = f"{error}. The podcast needs more packages: pip install 'wcpod[podcast]'"
        teller.give_up(message, NOT_CONFIGURED)
    except WcpodError as error:
        message, code = _failure(error, options, day)
        _note_failure(options, day, message, code, error)
        teller.give_up(message, code)
    except KeyboardInterrupt:
        word, code = interrupted()
        if teller.saved:
            teller.give_up(f"{word}; the episode is saved", code)
        _note_failure(options, day, word, code)
        teller.give_up(f"{word}; nothing was changed{_way_on(options, day)}", code)
    from wcpod.podcast.days import forget_failure

    forget_failure(episode.folder)
    teller.finish(episode)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of the command, by their names."""

    day: dt.date | None
    show_place: str | None
    kind: str
    model_name: str | None
    base_url: str | None
    out: Path
    archive: Path | None
    record: Path | None
    contact: str | None
    skills: Path | None
    length: tuple[int, int] | None
    limits: dict[str, float] | None
    force: bool
    base_address: str | None
    audio: str | None
    resume: bool
    trace: Path | None
    as_json: bool
    asked: dict[str, Any]


class _Teller:
    """Says how the run goes: events as JSON lines, or progress for people. Knows whether the episode is saved."""

    def __init__(self, lines: EventLines | None) -> None:
        self.lines = lines
        self.saved = False

    @contextlib.contextmanager
    def listening(self, model: Model, show: Show, day: dt.date) -> Iterator[Listener]:
        """The listener of the run."""
        from wcpod.podcast.progress import EpisodeSaved
        from wcpod.podcast.terminal import progress_on

        note = show.out_of_season(day)
        if self.lines is not None:
            about = {"day": day.isoformat(), "show": show.name, "model": model.name, "rehearsal": model.rehearsal}
            self.lines.write("run_started", **about, out_of_season=note)
        shown = contextlib.nullcontext(self.lines) if self.lines else progress_on(sys.stdout, rehearsal=model.rehearsal)
        with shown as listener:
            if note is not None and self.lines is None:
                click.echo(f"{day} is out of the season of {show.name}: {note}")

            def tell(event: Event) -> None:
                self.saved |= isinstance(event, EpisodeSaved)
                listener(event)

            yield tell

    def finish(self, episode: Episode) -> None:
        """The last word of a run that worked."""
        script, folder = episode.record["script"], episode.folder
        if self.lines is not None:
            self.lines.write("finished", folder=folder.path, **script)
            return
        click.echo(f"{script['han_characters']} Han characters, about {script['estimated_minutes']} minutes")
        for path in (folder.simplified, folder.traditional, folder.episode):
            click.echo(path)

    def give_up(self, message: str, code: int) -> NoReturn:
        """The last word of one that did not."""
        if self.lines is not None:
            self.lines.write("failed", message=message, exit_code=code)
        fail(message, code)


def _write_episode(options: RunOptions, day: dt.date, teller: _Teller) -> Episode:
    from wcpod import HyperlightRuntime
    from wcpod.podcast.audio import load_narrator
    from wcpod.podcast.day_folder import DayFolder
    from wcpod.podcast.feed import base_address
    from wcpod.podcast.framework_log import keep_quiet
    from wcpod.podcast.models import open_model
    from wcpod.podcast.models.settings import ModelSettings
    from wcpod.podcast.products import Products
    from wcpod.podcast.run import run_episode
    from wcpod.podcast.script_check import ScriptRules
    from wcpod.podcast.tracing import tracing

    keep_quiet()
    products = Products(
        base=base_address(options.base_address) if options.base_address else None,
        narrator=load_narrator(options.audio) if options.audio else None,
    )
    show = chosen_show(options.show_place)
    settings = ModelSettings(**options.asked)
    model = open_model(options.kind, name=options.model_name, base_url=options.base_url, settings=settings, show=show)

    def open_runtime(pages: Path) -> HyperlightRuntime:
        return HyperlightRuntime(
            policy=show.pages.policy(),
            archive=pages_for(model, show, options.archive),
            record=pages,
            audit=DayFolder(options.out, day).audit,
            contact=options.contact,
            limits=limits_of(options.limits or {}),
        )

    with tracing(options.trace), teller.listening(model, show, day) as listener:
        return asyncio.run(
            run_episode(
                day=day,
                out=options.out,
                model=model,
                open_runtime=open_runtime,
                show=show,
                skills=options.skills,
                rules=ScriptRules.of(show, length=options.length),
                pages=options.record,
                products=products,
                force=options.force,
                checkpoints=True,
                resume=options.resume,
                listener=listener,
            )
        )


def _failure(error: WcpodError, options: RunOptions, day: dt.date) -> tuple[str, int]:
    """What to say of an error, with at most one hint, and the exit code."""
    from wcpod.podcast.audio import AudioNotInstalled
    from wcpod.podcast.checkpoints import ResumeRefused
    from wcpod.podcast.day_folder import DayExists, DayFolder, DayInUse
    from wcpod.podcast.feed import BaseAddressError
    from wcpod.podcast.script_check import ScriptRejected
    from wcpod.podcast.tracing import TracingNotInstalled

    message, drafts = str(error), DayFolder(options.out, day).drafts
    if isinstance(error, BaseAddressError):
        return message, USAGE
    if isinstance(error, DayExists):
        return message, DAY_EXISTS
    if isinstance(error, ShowError | SkillError | ModelNotConfigured | AudioNotInstalled | TracingNotInstalled):
        return message, NOT_CONFIGURED
    if isinstance(error, SandboxError | GuestImageError | HypervisorUnavailable):
        return f"{message}\nTo check this machine: wcpod doctor{_way_on(options, day)}", NO_SANDBOX
    if isinstance(error, DayInUse | ResumeRefused):
        return message, FAILED
    if isinstance(error, ScriptRejected | ScriptFormatError) and drafts.is_dir():
        message += f"\nIts drafts are in {drafts}"
    return message + _way_on(options, day), _code_of_the_run(error, ScriptRejected)


def _code_of_the_run(error: WcpodError, rejected: type[WcpodError]) -> int:
    """Whether the settings, the service, what the model wrote, or something else ended the run."""
    if isinstance(error, ModelRefused):
        return NOT_CONFIGURED
    if isinstance(error, ModelUnavailable):
        return SERVICE_FAILED
    return NOT_PUBLISHABLE if isinstance(error, ModelError | ScriptFormatError | rejected) else FAILED


def _today(options: RunOptions) -> dt.date:
    """Today where the listeners of the show are. If there is no such show, which is told later: today here."""
    with contextlib.suppress(ImportError, WcpodError):
        return dt.datetime.now(ZoneInfo(chosen_show(options.show_place).clock.listeners)).date()
    return dt.date.today()


def _note_failure(options: RunOptions, day: dt.date, message: str, code: int, error: WcpodError | None = None) -> None:
    """For `wcpod days`: why the day failed, where it is the day that failed and not the way it was asked for."""
    from wcpod.podcast.day_folder import DayFolder, DayInUse
    from wcpod.podcast.days import note_failure

    if isinstance(error, DayInUse):
        return  # the day is another run's
    if code not in (USAGE, DAY_EXISTS, NO_SANDBOX, NOT_CONFIGURED) and options.out.is_dir():
        note_failure(DayFolder(options.out, day), message, code)


def _way_on(options: RunOptions, day: dt.date) -> str:
    """How to go on, where there is something to go on from."""
    from wcpod.podcast.day_folder import DayFolder

    if not DayFolder(options.out, day).checkpoints.is_dir():
        return ""
    return "\nTo go on after the last finished step: the same command with --resume"


def _boot_early(limits: Limits) -> None:
    """Has the clean state in the cache before the agent libraries are loaded.

    The first boot needs most memory of all, and gives it back; so the two peaks do not add up. What is wrong with the
    sandbox is told when the run opens it.
    """
    from wcpod import Sandbox

    with contextlib.suppress(WcpodError):
        Sandbox(limits=limits).close()
