"""`wcpod run`: write the day's script."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from wcpod.cli.exit_codes import DAY_EXISTS, FAILED, INTERRUPTED, NO_SANDBOX, NOT_CONFIGURED, fail
from wcpod.cli.options import LimitsOption, contact_option, force_option, limits_of, pipeline_options
from wcpod.exceptions import (
    GuestImageError,
    HypervisorUnavailable,
    ModelNotConfigured,
    SandboxError,
    SkillError,
    WcpodError,
)

if TYPE_CHECKING:
    from wcpod import HyperlightRuntime, Limits


@click.command()
@click.option("--date", "day", type=click.DateTime(["%Y-%m-%d"]), help="Day of the episode. Default: today.")
@pipeline_options
@click.option("--record", type=click.Path(path_type=Path, file_okay=False), help="Keep every page read in this folder.")
@contact_option
@click.option(
    "--skills",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Skills to use instead of those that come with wcpod.",
)
@click.option(
    "--length",
    nargs=2,
    type=click.IntRange(min=0),
    default=(1250, 1400),
    show_default=True,
    metavar="MIN MAX",
    help="Fewest and most Han characters of the script.",
)
@click.option("--limits", type=LimitsOption(), help="Limits of each execution, for example seconds=10,host_calls=20.")
@force_option
@click.option(
    "--base-address",
    envvar="WCPOD_BASE_ADDRESS",
    show_envvar=True,
    help="Where OUT is published, for example https://example.org/podcast. Adds an RSS feed item.",
)
@click.option("--audio", help="Audio plug-in that reads the script aloud. None comes with wcpod.")
@click.option("--resume", is_flag=True, help="Go on after the last finished step of a run that was cut off, if any.")
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write OpenTelemetry spans to this file. $OTEL_EXPORTER_OTLP_ENDPOINT sends them to a collector.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what happens as one JSON object a line.")
def run(
    day: dt.datetime | None,
    kind: str,
    model_name: str | None,
    base_url: str | None,
    out: Path,
    archive: Path | None,
    record: Path | None,
    contact: str | None,
    skills: Path | None,
    length: tuple[int, int],
    limits: dict[str, float] | None,
    force: bool,
    base_address: str | None,
    audio: str | None,
    resume: bool,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Write the day's script: two text files, show notes and episode.json under OUT/YYMMDD.

    Nothing appears before everything has worked, and an existing episode is kept unless --force is given. A rehearsal
    may always be replaced, and never replaces an episode of a real model.

    After each step a checkpoint is kept beside the day's folder until the episode is saved. When a run was cut off,
    the same command with --resume asks no agent again that was done.

    \b
    Example:
      wcpod run --date 2026-06-15
      wcpod run --date 2026-06-15 --resume
      wcpod run --model foundry
      wcpod run --model openai --base-url http://127.0.0.1:8000/v1 --model-name qwen3

    \b
    Exit codes:
      0 written            1 failed, nothing changed        2 wrong options
      3 the day exists     4 no usable sandbox              5 model, skill or package missing
      130 interrupted
    """
    _boot_early(limits_of(limits or {}))
    try:
        from wcpod.podcast import feed
        from wcpod.podcast.audio import AudioNotInstalled, load_narrator
        from wcpod.podcast.day_folder import DayExists, DayFolder
        from wcpod.podcast.event_lines import EventLines
        from wcpod.podcast.models import open_model
        from wcpod.podcast.models.rehearsal import SAMPLE_PAGES
        from wcpod.podcast.products import Products
        from wcpod.podcast.run import run_episode
        from wcpod.podcast.script_check import ScriptRules
        from wcpod.podcast.skills import SHIPPED_SKILLS
        from wcpod.podcast.terminal import progress_on
        from wcpod.podcast.tracing import TracingNotInstalled, tracing
    except ImportError as error:
        fail(f"{error}. The podcast needs more packages: pip install 'wcpod[podcast]'", NOT_CONFIGURED)

    from wcpod import FetchPolicy, HyperlightRuntime

    date = (day or dt.datetime.now()).date()
    folder = DayFolder(out, date)
    lines = EventLines(sys.stdout) if as_json else None

    def give_up(message: str, code: int) -> NoReturn:
        if code in (FAILED, NO_SANDBOX, INTERRUPTED) and folder.checkpoints.is_dir():
            message += "\nTo go on after the last finished step: the same command with --resume"
        if lines is not None:
            lines.write("failed", message=message, exit_code=code)
        fail(message, code)

    try:
        products = Products(
            base=feed.base_address(base_address) if base_address else None,
            narrator=load_narrator(audio) if audio else None,
        )
        model = open_model(kind, name=model_name, base_url=base_url)
        pages = archive or (SAMPLE_PAGES if model.rehearsal else None)

        def open_runtime() -> HyperlightRuntime:
            return HyperlightRuntime(
                policy=FetchPolicy.bbc(),
                archive=pages,
                record=record,
                audit=folder.audit,
                contact=contact,
                limits=limits_of(limits or {}),
            )

        if lines is not None:
            lines.write("run_started", day=date.isoformat(), model=model.name, rehearsal=model.rehearsal)
        shown = contextlib.nullcontext(lines) if lines else progress_on(sys.stdout, rehearsal=model.rehearsal)
        with tracing(trace), shown as listener:
            episode = asyncio.run(
                run_episode(
                    day=date,
                    out=out,
                    model=model,
                    open_runtime=open_runtime,
                    skills=skills or SHIPPED_SKILLS,
                    rules=ScriptRules(shortest=length[0], longest=length[1]),
                    products=products,
                    force=force,
                    checkpoints=True,
                    resume=resume,
                    listener=listener,
                )
            )
    except DayExists as error:
        give_up(str(error), DAY_EXISTS)
    except feed.BaseAddressError as error:
        raise click.UsageError(str(error)) from None
    except (SkillError, ModelNotConfigured, AudioNotInstalled, TracingNotInstalled) as error:
        give_up(str(error), NOT_CONFIGURED)
    except (HypervisorUnavailable, GuestImageError, SandboxError) as error:
        give_up(f"{error}\nTo check this machine: wcpod doctor", NO_SANDBOX)
    except WcpodError as error:
        give_up(str(error), FAILED)
    except KeyboardInterrupt:
        give_up("interrupted; nothing was changed", INTERRUPTED)
    script = episode.record["script"]
    if lines is not None:
        lines.write("finished", folder=folder.path, **script)
        return
    click.echo(f"{script['han_characters']} Han characters, about {script['estimated_minutes']} minutes")
    for path in (folder.simplified, folder.traditional, folder.episode):
        click.echo(path)


def _boot_early(limits: Limits) -> None:
    """Has the clean state in the cache before the agent libraries are loaded.

    The first boot needs most memory of all, and gives it back; so the two peaks do not add up. What is wrong with the
    sandbox is told when the run opens it.
    """
    from wcpod import Sandbox

    with contextlib.suppress(WcpodError):
        Sandbox(limits=limits).close()
