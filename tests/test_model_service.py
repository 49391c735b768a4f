"""A service that fails says so in one line: which, where, why, and what to do. Through the real clients."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from canned_runtime import canned
from model_server import Reply, model_server
from scripted_model import ANY_LENGTH, SCRIPTS
from test_model_clients import Project
from wcpod.exceptions import ModelError, ModelNotConfigured, ModelRefused, ModelUnavailable
from wcpod.podcast.models import Model
from wcpod.podcast.models.settings import ModelSettings
from wcpod.podcast.run import run_episode

SETTINGS = ModelSettings(timeout=20, retries=1)


def foundry(base_url: str, settings: ModelSettings = SETTINGS) -> Model:
    pytest.importorskip("agent_framework_foundry", reason="the extra 'foundry' is not installed")
    from wcpod.podcast.models.foundry import open_foundry

    return open_foundry(name="fake", project_client=Project(base_url), settings=settings)


def openai(base_url: str, settings: ModelSettings = SETTINGS) -> Model:
    pytest.importorskip("agent_framework_openai", reason="the extra 'openai' is not installed")
    from wcpod.podcast.models.openai import open_openai

    return open_openai(name="fake", base_url=base_url, settings=settings)


def write(model: Model, out: Path) -> None:
    asyncio.run(run_episode(day=dt.date(2026, 6, 15), out=out, model=model, open_runtime=canned, rules=ANY_LENGTH))


def told(model: Model, out: Path, kind: type[ModelError]) -> str:
    with pytest.raises(ModelError) as raised:
        write(model, out)
    assert type(raised.value) is kind
    assert list(out.iterdir()) == []
    return str(raised.value)


def answered(reply: Reply, out: Path, kind: type[ModelError], opened: Callable[..., Model] = openai) -> str:
    """The line without the address, which must stand in it."""
    with model_server(lambda _: reply) as (base_url, _):
        line = told(opened(base_url), out, kind)
    assert f" at {base_url} " in line
    return line.replace(f" at {base_url}", "")


OPTIONS = "check --model-name, --temperature and --max-tokens"
KEY = "set OPENAI_API_KEY to a key that it takes"


@pytest.mark.parametrize(
    ("status", "kind", "what", "advice"),
    [
        (
            400,
            ModelRefused,
            "refused the request (400 Bad Request",
            "check --model-name, --temperature and --max-tokens",
        ),
        (401, ModelRefused, "refused who asked (401 Unauthorized", KEY),
        (302, ModelRefused, "sends the request elsewhere (302 Found", "check --base-url, which usually ends with /v1"),
        (402, ModelRefused, "wants to be paid (402 Payment Required", "check the account"),
        (403, ModelRefused, "refused who asked (403 Forbidden", KEY),
        (
            404,
            ModelRefused,
            "has no such address or model (404 Not Found",
            "check --model-name, and --base-url, which usually ends with /v1",
        ),
        (
            429,
            ModelUnavailable,
            "was asked too often (429 Too Many Requests",
            "wait, then try again, or raise --model-retries",
        ),
        (500, ModelUnavailable, "failed (500 Internal Server Error", "try again later"),
        (503, ModelUnavailable, "failed (503 Service Unavailable", "try again later"),
    ],
)
def test_a_status(tmp_path: Path, status: int, kind: type[ModelError], what: str, advice: str) -> None:
    line = answered(Reply(status=status), tmp_path, kind)
    assert line == f"the model fake {what}: told to fail): {advice}"


def test_foundry_names_its_own_settings(tmp_path: Path) -> None:
    line = answered(Reply(status=401), tmp_path, ModelRefused, foundry)
    assert line == (
        "the model fake refused who asked (401 Unauthorized: told to fail): "
        "run: az login, with an account that may use the project"
    )


@pytest.mark.parametrize("opened", [openai, foundry])
def test_a_web_page(tmp_path: Path, opened: Callable[..., Model]) -> None:
    page = Reply(raw=("text/html; charset=utf-8", b"<html><title>Welcome</title></html>"))
    line = answered(page, tmp_path, ModelRefused, opened)
    what = "a web page" if opened is openai else "something"
    place = "--base-url, which usually ends with /v1" if opened is openai else "FOUNDRY_PROJECT_ENDPOINT"
    assert line == f"the model fake answered with {what} that is no answer of a model: check {place}"


def test_a_request_that_is_filtered_is_no_fault_of_the_settings(tmp_path: Path) -> None:
    body = b'{"error": {"message": "filtered", "code": "content_filter"}}'
    line = answered(Reply(status=400, raw=("application/json", body)), tmp_path, ModelError)
    assert line == "the model fake withheld its answer (filtered): try again, or choose another model"


def test_a_server_that_only_streams(tmp_path: Path) -> None:
    stream = Reply(raw=("text/event-stream", b'data: {"id": "1", "choices": []}\n\ndata: [DONE]\n\n'))
    assert answered(stream, tmp_path, ModelRefused) == (
        "the model fake answered with a stream, although a whole answer was asked for: "
        "wcpod cannot use a server that only streams: switch that off there, or choose another"
    )


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"null", b"{}"])
def test_json_that_is_no_answer(tmp_path: Path, body: bytes) -> None:
    line = answered(Reply(raw=("application/json", body)), tmp_path, ModelRefused)
    assert line == (
        "the model fake answered with application/json that is no answer of a model: "
        "check --base-url, which usually ends with /v1"
    )


@pytest.mark.parametrize("opened", [openai, foundry])
def test_nothing_listens(tmp_path: Path, opened: Callable[..., Model]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    place = "--base-url, which usually ends with /v1" if opened is openai else "FOUNDRY_PROJECT_ENDPOINT"
    assert told(opened(address), tmp_path, ModelUnavailable) == (
        f"the model fake at {address} cannot be reached (Connection refused): start it, or check {place}"
    )


@pytest.mark.parametrize("opened", [openai, foundry])
def test_a_model_that_hangs_has_the_time_of_one_answer(tmp_path: Path, opened: Callable[..., Model]) -> None:
    with model_server(lambda _: Reply(SCRIPTS, delay=3.0)) as (base_url, _):
        model = opened(base_url, ModelSettings(timeout=0.5, retries=5))
        began = time.monotonic()
        line = told(model, tmp_path, ModelUnavailable)
    assert time.monotonic() - began < 3
    assert line == (
        f"the model fake at {base_url} gave no answer within 0.5 s: "
        "try again later, choose a faster model, or raise --model-timeout"
    )


def test_the_defaults_end_a_model_that_hangs_within_five_minutes() -> None:
    assert ModelSettings().timeout <= 300


@pytest.mark.parametrize("opened", [openai, foundry])
def test_temperature_and_tokens_are_sent_if_they_are_chosen(tmp_path: Path, opened: Callable[..., Model]) -> None:
    tokens = {openai: ("max_tokens", "max_completion_tokens"), foundry: ("max_output_tokens",)}[opened]
    with model_server(lambda _: Reply(SCRIPTS)) as (base_url, requests):
        write(opened(base_url, ModelSettings(temperature=0.3, max_tokens=5000)), tmp_path / "a")
        chosen = len(requests)
        write(opened(base_url), tmp_path / "b")
    assert {request["temperature"] for request in requests[:chosen]} == {0.3}
    assert all(5000 in [request.get(name) for name in tokens] for request in requests[:chosen])
    assert not any(name in request for request in requests[chosen:] for name in ("temperature", *tokens))


@pytest.mark.parametrize(
    ("address", "example"),
    [
        ("127.0.0.1:9", "http://127.0.0.1:9"),
        ("localhost:8000/v1", "http://localhost:8000/v1"),
        ("ftp://host/v1", "http://host/v1"),
        ("http://", "http://127.0.0.1:8000/v1"),
        ("http://host:99999/v1", "http://host:99999/v1"),
        ("/v1", "http:///v1"),
    ],
)
def test_an_address_that_is_none_is_refused_before_anything_is_asked(address: str, example: str) -> None:
    with pytest.raises(ModelNotConfigured) as raised:
        openai(address)
    assert str(raised.value) == f"--base-url must be an address such as {example}, not {address!r}"


def test_the_address_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from wcpod.podcast.models.openai import open_openai

    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:1")
    with pytest.raises(ModelNotConfigured, match=r"^OPENAI_BASE_URL must be an address such as http://localhost:1, "):
        open_openai(name="fake")


def test_no_password_is_shown(tmp_path: Path) -> None:
    with model_server(lambda _: Reply(status=404)) as (base_url, _):
        line = told(openai(base_url.replace("http://", "http://me:secret@")), tmp_path, ModelRefused)
    assert "secret" not in line and "me:" not in line


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"timeout": 0}, "timeout must be more than 0 and at most 3600 seconds"),
        ({"timeout": float("nan")}, "timeout must be more than 0 and at most 3600 seconds"),
        ({"retries": -1}, "retries must be 0 to 20"),
        ({"temperature": 2.5}, "temperature must be 0 to 2"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
    ],
)
def test_settings_that_make_no_sense(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        ModelSettings(**wrong)  # type: ignore[arg-type]
    assert str(raised.value) == message
