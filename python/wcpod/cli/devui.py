"""`wcpod devui`: the pipeline in Agent Framework's DevUI."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path
from typing import Any

import click

from wcpod.cli.exit_codes import NO_SANDBOX, NOT_CONFIGURED, fail
from wcpod.cli.model_options import model_options
from wcpod.cli.options import chosen_show, contact_option, force_option, pages_for, pipeline_options
from wcpod.exceptions import (
    GuestImageError,
    HypervisorUnavailable,
    ModelNotConfigured,
    SandboxError,
    ShowError,
    SkillError,
)


@click.command()
@pipeline_options
@model_options
@contact_option
@force_option
@click.option("--port", type=click.IntRange(1, 65535), default=8080, show_default=True, help="On 127.0.0.1.")
@click.option("--no-auth", is_flag=True, help="Let anyone in who can reach the port on this machine.")
@click.option("--open", "browser", is_flag=True, help="Open a browser.")
def devui(
    show_place: str | None,
    kind: str,
    model_name: str | None,
    base_url: str | None,
    out: Path,
    archive: Path | None,
    contact: str | None,
    force: bool,
    port: int,
    no_auth: bool,
    browser: bool,
    asked: dict[str, Any],
) -> None:
    """Watch and start runs in Agent Framework's DevUI, on this machine only. The input of a run is its day.

    \b
    Example:
      wcpod devui --open
      wcpod devui --model foundry --port 8090

    \b
    Exit codes:
      0 interrupted        2 wrong options        4 no usable sandbox        5 show, model, skill or package missing
    """
    try:
        import agent_framework_devui  # noqa: F401

        from wcpod.podcast.devui import build_devui_workflow, serve
        from wcpod.podcast.models import open_model
        from wcpod.podcast.models.settings import ModelSettings
    except ImportError as error:
        fail(f"{error}. DevUI needs more packages: pip install 'wcpod[devui]'", NOT_CONFIGURED)

    from wcpod import HyperlightRuntime

    token = None if no_auth else secrets.token_urlsafe(24)
    try:
        show = chosen_show(show_place)
        model = open_model(kind, name=model_name, base_url=base_url, settings=ModelSettings(**asked), show=show)
        with (
            tempfile.TemporaryDirectory(prefix="wcpod-pages-") as folder,
            HyperlightRuntime(
                policy=show.pages.policy(),
                archive=pages_for(model, show, archive),
                record=Path(folder),
                contact=contact,
            ) as runtime,
        ):
            workflow = build_devui_workflow(
                model=model, runtime=runtime, out=out, pages=Path(folder), show=show, force=force
            )
            click.echo(f"http://127.0.0.1:{port}" + (f"  token: {token}" if token else ""))
            serve(workflow, port=port, token=token, browser=browser)
    except (ShowError, SkillError, ModelNotConfigured) as error:
        fail(str(error), NOT_CONFIGURED)
    except (HypervisorUnavailable, GuestImageError, SandboxError) as error:
        fail(f"{error}\nTo check this machine: wcpod doctor", NO_SANDBOX)
