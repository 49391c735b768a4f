"""How a model is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is asked; every default is also that of `wcpod run`.

    Attributes:
        timeout: Seconds for one answer, all its tries together. A model that hangs ends the run after so many.
        retries: Further tries after 429, 5xx, or a connection that failed.
        temperature: From 0 (always the likeliest word) to 2; None leaves it to the service, for not every model
            takes one.
        max_tokens: Most tokens of one answer; None leaves it to the service.
    """

    timeout: float = 240.0
    retries: int = 4
    temperature: float | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= 3600:
            raise ValueError("timeout must be more than 0 and at most 3600 seconds")
        if not 0 <= self.retries <= 20:
            raise ValueError("retries must be 0 to 20")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise ValueError("temperature must be 0 to 2")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError("max_tokens must be at least 1")

    def chat_options(self) -> dict[str, Any]:
        """What goes into every request."""
        chosen = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        return {name: value for name, value in chosen.items() if value is not None}


DEFAULT_SETTINGS = ModelSettings()
