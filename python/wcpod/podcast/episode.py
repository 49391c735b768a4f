"""`episode.json`: how an episode was made. Everything in it is a plain value, and nothing in it came from a model."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import platform
from importlib import metadata
from typing import TYPE_CHECKING, Any

from wcpod.podcast.hanzi import han_count
from wcpod.podcast.models import Model
from wcpod.podcast.run_record import RunRecord
from wcpod.podcast.scripts import Scripts

if TYPE_CHECKING:
    from wcpod.sandbox import HostCall, Isolation

SCHEMA_VERSION = 1
HAN_PER_MINUTE = 260
REHEARSAL_NOTE = "REHEARSAL: written by a scripted stand-in for a model from sample pages. Not news, not from the BBC."


def episode_record(
    *, day: dt.date, model: Model, isolation: Isolation, record: RunRecord, scripts: Scripts, seconds: float
) -> dict[str, Any]:
    """The content of `episode.json`, schema version 1.

    `tool_call_counts` is agent → tool → calls: `execute_code` and `load_skill` as the model called them,
    `fetch_url` as the guest did, however each call ended. Times are in seconds.
    """
    han = han_count(scripts.simplified)
    episode: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "day": day.isoformat(),
        "model": {"kind": model.kind, "name": model.name, "rehearsal": model.rehearsal},
        "isolation": dataclasses.asdict(isolation),
        "tool_call_counts": record.counts.as_dict(),
        "rejected_tool_calls": record.counts.rejected(),
        "tokens": record.tokens,
        "fetches": [_fetch(agent, call) for agent, call in record.counts.host_calls() if call.name == "fetch_url"],
        "script": {
            "han_characters": han,
            "drafts": len(record.drafts),
            "estimated_minutes": round(han / HAN_PER_MINUTE, 2),
            "simplified_sha256": _sha256(scripts.simplified),
            "traditional_sha256": _sha256(scripts.traditional),
        },
        "seconds": {
            "total": round(seconds, 3),
            "steps": {step: round(spent, 3) for step, spent in record.step_seconds.items()},
            "executions": [_execution_seconds(execution) for execution in record.executions],
        },
        "versions": _versions(),
    }
    if model.rehearsal:
        episode["note"] = REHEARSAL_NOTE
    return episode


def _fetch(agent: str, call: HostCall) -> dict[str, Any]:
    fetch = call.fetch  # None if the run ended before the fetch did
    return {
        "agent": agent,
        "status": call.status,
        "reason": call.reason,
        "url": fetch and fetch.url,
        "final_url": fetch and fetch.final_url,
        "http_status": fetch and fetch.http_status,
        "sha256": fetch and fetch.sha256,
        "title": fetch and fetch.title,
        "seconds": round(call.seconds, 4),
    }


def _execution_seconds(execution: Any) -> dict[str, Any]:
    result = execution.result
    return {"agent": execution.agent, "kind": result.kind, "seconds": round(result.usage.seconds, 4)}


def _sha256(script: str) -> str:
    """Hash of the file, which is the script and one line end."""
    return hashlib.sha256((script + "\n").encode()).hexdigest()


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in ("wcpod", "agent-framework-core", "opencc"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions
