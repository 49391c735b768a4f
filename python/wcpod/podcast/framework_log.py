"""The log of the libraries that run the agents."""

from __future__ import annotations

import logging

_LOGGERS = ("agent_framework", "azure", "openai")


def keep_quiet() -> None:
    """Without a handler of the application's their warnings would stand before the one line that says what failed.

    Whoever configures logging gets them as before.
    """
    for name in _LOGGERS:
        logging.getLogger(name).addHandler(logging.NullHandler())
