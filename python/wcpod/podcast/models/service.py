"""The service behind a model: how long it may take for an answer, and one line for each way in which it fails.

Every line names the model, the address, the cause, and what to do.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agent_framework import ChatContext, chat_middleware

from wcpod.control_characters import neutralise
from wcpod.exceptions import ModelError, ModelNotConfigured, ModelRefused, ModelUnavailable
from wcpod.podcast.models.settings import ModelSettings

ChatMiddleware = Callable[[ChatContext, Callable[[], Awaitable[None]]], Awaitable[None]]

CONNECT_SECONDS = 15.0
_LONGEST_QUOTE = 200


@dataclass(slots=True)
class Service:
    """A service, and where its settings are.

    Attributes:
        model: Name of the model or deployment.
        address: Where it is, without a password.
        key: What to do when it refuses who asks.
        place: What to check when the address may be wrong.
        settings: How long to wait, and how often to try.
        content_type: Of its newest answer.
    """

    model: str
    address: str
    key: str
    place: str
    settings: ModelSettings
    content_type: str = field(default="", init=False)

    async def note(self, response: Any) -> None:
        """Event hook of the HTTP client: remember of what kind an answer is."""
        self.content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()

    def middleware(self) -> ChatMiddleware:
        """Chat middleware for each request: ends one that takes too long, and tells what failed in one line.

        All tries of a request together have the time of one answer, so a service that hangs is given up in that time.
        """

        @chat_middleware
        async def bounded(context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
            try:
                await asyncio.wait_for(call_next(), None if context.stream else self.settings.timeout)
            except Exception as error:  # also what the client library trips over in an answer it does not understand
                if (told := self.failure(error)) is None:
                    raise
                raise told from error

        return bounded

    def failure(self, error: BaseException) -> ModelError | None:
        """What the error of a request means; None if it is not the service's."""
        causes = list(_chain(error))
        names = {base.__name__ for cause in causes for base in type(cause).__mro__}
        if "OpenAIContentFilterException" in names:
            what = f"withheld its answer ({_said(causes)})"
            return ModelError(self._line(what, "try again, or choose another model"))
        if status := next((cause.status_code for cause in causes if hasattr(cause, "status_code")), None):
            return self._refused(int(status), causes)
        if "APITimeoutError" in names or isinstance(error, asyncio.TimeoutError):
            return self._unavailable(
                f"gave no answer within {self.settings.timeout:g} s",
                "try again later, choose a faster model, or raise --model-timeout",
            )
        if "APIConnectionError" in names:
            return self._unavailable(f"cannot be reached ({_root(causes)})", f"start it, or check {self.place}")
        if "ClientAuthenticationError" in names or "CredentialUnavailableError" in names:
            return ModelRefused(self._line("cannot be signed in to", self.key))
        return self._not_understood(names)

    def _refused(self, status: int, causes: list[BaseException]) -> ModelError:
        cause = f"{status} {_phrase(status)}"
        if said := _said(causes):
            cause += f": {said}"
        if status in (401, 403):
            return ModelRefused(self._line(f"refused who asked ({cause})", self.key))
        if status == 402:
            return ModelRefused(self._line(f"wants to be paid ({cause})", "check the account"))
        if 300 <= status < 400:
            return ModelRefused(self._line(f"sends the request elsewhere ({cause})", f"check {self.place}"))
        if status in (404, 405):
            check = f"check --model-name, and {self.place}"
            return ModelRefused(self._line(f"has no such address or model ({cause})", check))
        if status == 429:
            return self._unavailable(f"was asked too often ({cause})", "wait, then try again, or raise --model-retries")
        if status >= 500 or status == 408:
            return self._unavailable(f"failed ({cause})", "try again later")
        return ModelRefused(
            self._line(f"refused the request ({cause})", "check --model-name, --temperature and --max-tokens")
        )

    def _not_understood(self, names: set[str]) -> ModelError | None:
        if self.content_type == "text/event-stream":
            return ModelRefused(
                self._line(
                    "answered with a stream, although a whole answer was asked for",
                    "wcpod cannot use a server that only streams: switch that off there, or choose another",
                )
            )
        # A body that is no JSON comes out of the client library as text, whose parts it then looks for.
        if names & {"AttributeError", "APIResponseValidationError", "JSONDecodeError", "TypeError"}:
            what = "a web page" if self.content_type == "text/html" else self.content_type or "something"
            return ModelRefused(self._line(f"answered with {what} that is no answer of a model", f"check {self.place}"))
        return None

    def _unavailable(self, what: str, advice: str) -> ModelUnavailable:
        return ModelUnavailable(self._line(what, advice))

    def _line(self, what: str, advice: str) -> str:
        return f"the model {self.model} at {self.address} {what}: {advice}"


def checked_address(text: str, option: str) -> str:
    """An absolute http or https address.

    Raises:
        ModelNotConfigured: if it is none; the message names `option`, where it comes from, and an address to write.
    """
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if valid:
        return text
    bare = text.rpartition("://")[2]
    raise ModelNotConfigured(f"{option} must be an address such as http://{bare or '127.0.0.1:8000/v1'}, not {text!r}")


def without_password(address: str) -> str:
    """The address as it may be shown: no user, no password, no query."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")).rstrip("/")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _root(causes: list[BaseException]) -> str:
    """What the system said: the deepest cause that says something."""
    for cause in reversed(causes):
        said: object = getattr(cause, "strerror", None) or cause
        if isinstance(cause, ConnectionError) and cause.errno:
            said = os.strerror(cause.errno)  # asyncio's own text leaves out why
        if text := _quoted(said):
            return text
    return type(causes[-1]).__name__


def _said(causes: list[BaseException]) -> str:
    """What the service itself said, if that can be told in one line."""
    for cause in causes:
        body = getattr(cause, "body", None)
        message = body.get("message") if isinstance(body, dict) else None
        if isinstance(message, str):
            return _quoted(message)
    return ""


def _quoted(text: object) -> str:
    line = " ".join(neutralise(str(text)).split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}…"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "an unknown status"
