"""How a model is asked, as options. They reach the command as one argument, `asked`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

_OPTIONS = (
    click.option(
        "--model-timeout",
        type=click.FloatRange(min=0, min_open=True, max=3600),
        default=240.0,
        show_default=True,
        help="Seconds for one answer of the model, all its tries together.",
    ),
    click.option(
        "--model-retries",
        type=click.IntRange(0, 20),
        default=4,
        show_default=True,
        help="Further tries of a request that the model's service could not serve (429, 5xx, no connection).",
    ),
    click.option(
        "--temperature",
        type=click.FloatRange(0, 2),
        help="How freely the model chooses its words. Default: the service's.",
    ),
    click.option("--max-tokens", type=click.IntRange(min=1), help="Most tokens of one answer. Default: the service's."),
)


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds them. `asked` holds the arguments of `wcpod.podcast.models.settings.ModelSettings`."""

    @functools.wraps(command)
    def gathered(*, model_timeout: float, model_retries: int, **values: Any) -> Any:
        asked = {name: values.pop(name) for name in ("temperature", "max_tokens")}
        return command(asked={"timeout": model_timeout, "retries": model_retries, **asked}, **values)

    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered
