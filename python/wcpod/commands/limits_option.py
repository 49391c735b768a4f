"""The option --limits of several commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from wcpod import Limits

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
