"""Exit codes, and the way to end with one."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

FAILED, USAGE, DAY_EXISTS, NO_SANDBOX, NOT_CONFIGURED = 1, 2, 3, 4, 5
SERVICE_FAILED, NOT_PUBLISHABLE = 6, 7
EXEC_TIMEOUT, EXEC_NO_SANDBOX = 124, 125
INTERRUPTED, TERMINATED = 130, 143


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong on standard error, and end."""
    click.echo(f"wcpod: {message}", err=True)
    sys.exit(code)
