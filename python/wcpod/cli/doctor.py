"""`wcpod doctor`: is this machine fit to run a sandbox?"""

from __future__ import annotations

import sys

import click


@click.command()
def doctor() -> None:
    """Check this machine: boot a guest, restore it, interrupt it, and say what to do if something is missing.

    \b
    Example:
      wcpod doctor
    """
    from wcpod import doctor as checks

    sys.exit(checks.main())
