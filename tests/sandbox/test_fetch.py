"""fetch_url as the guest sees it: policy, redirects, bounds, counters. A page archive stands in for the network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wcpod import FetchPolicy, HostCall, Limits, Sandbox, extract_page
from wcpod.exceptions import FetchPolicyError

PAGE = "https://www.bbc.com/sport/page"


def archive(folder: Path) -> Path:
    """An archive of three pages and three redirects."""
    rows: list[dict[str, Any]] = []

    def page(url: str, body: str, kind: str = "text/html; charset=utf-8") -> None:
        name = f"{len(rows)}.html"
        (folder / name).write_bytes(body.encode())
        rows.append({"url": url, "status": 200, "content_type": kind, "location": None, "file": name})

    def redirect(url: str, location: str) -> None:
        rows.append({"url": url, "status": 302, "content_type": "", "location": location, "file": None})

    page(PAGE, "<title>A page</title><meta name=description content=About><p>Text.</p><a href='/sport/next'>n</a>")
    page("https://www.bbc.com/sport/long", "世" * 3000, "text/plain; charset=utf-8")
    redirect("https://www.bbc.com/sport/moved", "/sport/page")
    redirect("https://www.bbc.com/sport/away", "https://evil.example/")
    redirect("https://www.bbc.com/sport/uk", "https://www.bbc.co.uk/sport")
    redirect("https://www.bbc.com/sport/plain", "http://www.bbc.com/sport/page")
    (folder / "index.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Sandbox(policy=FetchPolicy.bbc(), archive=archive(tmp_path_factory.mktemp("archive"))) as made:
        yield made


def fetched(box: Sandbox, url: str, **options: Any) -> tuple[dict[str, Any], HostCall]:
    result = box.run(f"import json\nprint(json.dumps(call_tool('fetch_url', url={url!r}, **{options!r})))")
    assert result.ok, result.stderr
    return json.loads(result.stdout), result.host_calls[0]


@pytest.mark.microvm
def test_an_allowed_page(box: Sandbox) -> None:
    page, call = fetched(box, PAGE)
    assert page == {
        "STATUS": "ok",
        "URL": PAGE,
        "TITLE": "A page",
        "DESCRIPTION": "About",
        "LINKS": ["https://www.bbc.com/sport/next"],
        "BODY": page["BODY"],
    }
    assert "Text." in page["BODY"]
    assert (call.name, call.status) == ("fetch_url", "ok")
    assert call.fetch is not None
    assert (call.fetch.url, call.fetch.http_status, call.fetch.title) == (PAGE, 200, "A page")


@pytest.mark.microvm
@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("https://evil.example/", "evil.example"),
        ("http://www.bbc.com/sport/page", "https"),
        ("https://www.bbc.com@evil.example/", ""),
        ("https://www.bbc.com/sport/away", "evil.example"),
        ("https://www.bbc.com/sport/uk", "www.bbc.co.uk"),
        ("https://www.bbc.com/sport/plain", "https"),
    ],
)
def test_what_is_blocked_says_why(box: Sandbox, url: str, refused: str) -> None:
    page, call = fetched(box, url)
    assert (page["STATUS"], page["BODY"], call.status) == ("blocked", "", "blocked")
    assert refused in page["REASON"]


@pytest.mark.microvm
def test_a_redirect_within_the_policy_is_followed(box: Sandbox) -> None:
    page, call = fetched(box, "https://www.bbc.com/sport/moved")
    assert (page["STATUS"], page["URL"]) == ("ok", PAGE)
    assert call.fetch is not None
    assert call.fetch.redirects == 1


@pytest.mark.microvm
def test_a_body_is_cut_on_a_whole_character(box: Sandbox) -> None:
    page, _ = fetched(box, "https://www.bbc.com/sport/long")
    assert page["BODY"] == "世" * 2730
    assert page["NEXT_OFFSET"] == 8190
    rest, _ = fetched(box, "https://www.bbc.com/sport/long", offset=page["NEXT_OFFSET"])
    assert rest["BODY"] == "世" * 270
    assert "NEXT_OFFSET" not in rest


@pytest.mark.microvm
def test_a_page_that_is_not_in_the_archive_is_an_error(box: Sandbox) -> None:
    page, call = fetched(box, "https://www.bbc.com/sport/none")
    assert (page["STATUS"], call.status) == ("error", "error")
    assert "archive" in page["REASON"]


@pytest.mark.microvm
def test_each_call_is_reported_once_however_it_ends(box: Sandbox) -> None:
    seen: list[HostCall] = []
    urls = [PAGE, "https://evil.example/", "https://www.bbc.com/sport/none", "no url"]
    result = box.run(f"for url in {urls!r}: call_tool('fetch_url', url=url)", on_call=seen.append)
    assert result.ok, result.stderr
    assert [call.status for call in seen] == ["ok", "blocked", "error", "blocked"]
    assert result.host_calls == tuple(seen)


@pytest.mark.microvm
def test_without_a_policy_there_is_no_network(sandbox: Sandbox) -> None:
    result = sandbox.run("call_tool('fetch_url', url='https://www.bbc.com/')")
    assert result.kind == "error"
    assert "without a fetch policy" in result.stderr


@pytest.mark.microvm
def test_the_audit_file_has_a_line_a_fetch(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    path = tmp_path / "audit.jsonl"
    urls = [PAGE, "https://evil.example/", "https://www.bbc.com/over?the=limit"]
    pages = archive(tmp_path / "pages")
    with Sandbox(policy=FetchPolicy.bbc(), archive=pages, audit=path, limits=Limits(host_calls=2)) as made:
        made.run(f"for url in {urls!r}: call_tool('fetch_url', url=url)")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(line["url"], line["decision"]) for line in lines] == list(
        zip(urls, ["allow", "block", "block"], strict=True)
    )
    assert lines[2]["reason"] == "this run has used up its 2 host calls"


def test_a_policy_decides_without_a_network() -> None:
    policy = FetchPolicy.bbc()
    assert policy.check("https://www.bbc.com/news").allowed
    decision = policy.check("https://news.bbc.com/")
    assert (decision.allowed, decision.host) == (False, "news.bbc.com")
    assert "news.bbc.com" in decision.reason
    assert not FetchPolicy(["example.org"], query=False).check("https://example.org/?a=1").allowed
    assert not FetchPolicy(["example.org"], paths=["/a/"]).check("https://example.org/b").allowed


def test_a_policy_that_makes_no_sense_is_refused() -> None:
    for hosts in (["*.bbc.com"], ["https://www.bbc.com"], ["127.0.0.1"], [""]):
        with pytest.raises(FetchPolicyError):
            FetchPolicy(hosts)


def test_an_archive_that_is_not_there_is_told_before_the_guest_boots(tmp_path: Path) -> None:
    with pytest.raises(FetchPolicyError, match=r"index\.jsonl"):
        Sandbox(policy=FetchPolicy.bbc(), archive=tmp_path / "none")


def test_extraction_needs_no_sandbox() -> None:
    page = extract_page(b"<title>T</title><p>x</p>", content_type="text/html", url="https://www.bbc.com/")
    assert (page["STATUS"], page["TITLE"], page["BODY"]) == ("ok", "T", "x")
