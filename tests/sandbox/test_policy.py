"""Fetch policies as a developer makes them."""

from __future__ import annotations

from typing import Any

import pytest

from wcpod import FetchPolicy
from wcpod.exceptions import FetchPolicyError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hosts": "www.bbc.com"}, "hosts is a list such as ['www.bbc.com'], not one text"),
        ({"hosts": ["www.bbc.com"], "paths": "/sport"}, "paths is a list such as ['/sport'], not one text"),
        ({"hosts": [b"www.bbc.com"]}, "hosts is a list of texts, and b'www.bbc.com' is none"),
        ({"hosts": ["www.bbc.com", None]}, "hosts is a list of texts, and None is none"),
        ({"hosts": ["\ud800.com"]}, "cannot be an allowed host"),
        ({"hosts": ["例え.jp"]}, "its ASCII form is xn--r8jz45g.jp"),
    ],
)
def test_a_policy_that_makes_no_sense_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(FetchPolicyError) as raised:
        FetchPolicy(**options)
    assert message in str(raised.value)


@pytest.mark.parametrize("url", ["https://www.bbc.com/\ud800", "https://www.bbc.com/?q=\udfff", "https://\ud83d.com/"])
def test_half_a_surrogate_pair_in_a_url_is_decided_about(url: str) -> None:
    decision = FetchPolicy(["www.bbc.com"]).check(url)
    assert decision.allowed is url.startswith("https://www.bbc.com")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://www.bbc.com/zhongwen/世界杯", "host www.bbc.com is allowed"),
        ("https://www.bbc.com/?q=world cup", "the URL contains white space (host www.bbc.com)"),
        ("https://www.bbc.com/\n", "the URL contains a control character (host www.bbc.com)"),
        (
            "https://例え.jp/",
            "the host contains letters that are not ASCII and may imitate another host; "
            "its ASCII form is xn--r8jz45g.jp (host 例え.jp)",
        ),
    ],
)
def test_what_is_not_ascii_in_a_url(url: str, reason: str) -> None:
    assert FetchPolicy(["www.bbc.com", "xn--r8jz45g.jp"]).check(url).reason == reason


def test_a_url_that_is_no_text() -> None:
    with pytest.raises(TypeError, match="a URL is a str, not bytes"):
        FetchPolicy(["www.bbc.com"]).check(b"https://www.bbc.com/")  # type: ignore[arg-type]
