"""Which URLs a sandbox may fetch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from wcpod import _bridge
from wcpod.exceptions import FetchPolicyError

_SURROGATE = re.compile("[\ud800-\udfff]")


class Decision(NamedTuple):
    """What a policy says of a URL."""

    allowed: bool
    reason: str
    """A sentence that names what was refused, or that the host is allowed; never empty."""
    host: str | None
    """The host that was decided about, when there is one."""


def check_contact(contact: str) -> str:
    """`contact`, if it can stand in a user agent.

    Raises:
        FetchPolicyError: it cannot; the message says what can.
    """
    _bridge.FetchSession(FetchPolicy(["www.example.org"])._inner, contact=contact)
    return contact


class FetchPolicy:
    """The URLs that `fetch_url` may ask for: https, exact hosts, nothing else. Enforced in Rust at every redirect."""

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        paths: Iterable[str] | None = None,
        query: bool = True,
        max_url_bytes: int | None = None,
    ) -> None:
        """Allows `hosts`.

        Args:
            hosts: exact host names, such as "www.example.org"; no wildcards, ports or addresses.
            paths: when given, only URLs whose path is one of these or lies below one, by whole segments.
            query: whether a URL may have a query string, which can carry data out.
            max_url_bytes: longest URL, in bytes (default 2048).

        Raises:
            FetchPolicyError: a host, path or bound is invalid; the message names it.
        """
        self._inner = _bridge.FetchPolicy(
            _texts("hosts", hosts), None if paths is None else _texts("paths", paths), query, max_url_bytes
        )

    @classmethod
    def bbc(cls) -> FetchPolicy:
        """The hosts of the show that is written when none is chosen. For another: `find_show(...).pages.policy()`."""
        from wcpod.shows import default_hosts

        return cls(default_hosts())

    @property
    def hosts(self) -> tuple[str, ...]:
        """The allowed hosts."""
        return tuple(self._inner.hosts)

    def check(self, url: str) -> Decision:
        """What the policy says of `url`. Asks no network. Half a surrogate pair counts as U+FFFD, as from the guest."""
        if not isinstance(url, str):
            raise TypeError(f"a URL is a str, not {type(url).__name__}")
        return Decision(*self._inner.check(_SURROGATE.sub("\ufffd", url)))

    def __repr__(self) -> str:
        return f"FetchPolicy(hosts={list(self.hosts)!r})"


def _texts(name: str, given: Iterable[str]) -> list[str]:
    if isinstance(given, str):
        raise FetchPolicyError(f"{name} is a list such as [{given!r}], not one text")
    texts = list(given)
    for text in texts:
        if not isinstance(text, str):
            raise FetchPolicyError(f"{name} is a list of texts, and {text!r} is none")
    return [_SURROGATE.sub("\ufffd", text) for text in texts]
