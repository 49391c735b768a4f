"""`episode.json`: how an episode was made. Everything in it is a plain value, and nothing in it came from a model."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import platform
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

from wcpod.podcast.hanzi import han_count
from wcpod.podcast.models import Model
from wcpod.podcast.run_record import CodeRun, RunRecord, TimedCall
from wcpod.podcast.scripts import Scripts
from wcpod.podcast.show import Show

if TYPE_CHECKING:
    from wcpod.sandbox import Isolation

SCHEMA_VERSION = 1
MOST_KEPT = 20_000
"""Characters kept of each code, stdout and stderr."""
HAN_PER_MINUTE = 260
REHEARSAL_NOTE = "REHEARSAL: written by a scripted stand-in for a model from sample pages. Not news."
REHEARSAL_NOTE_IN_HAN = "彩排：由预排程序根据示例网页生成，并非真实新闻。"


def episode_record(
    *,
    day: dt.date,
    show: Show,
    model: Model,
    isolation: Isolation,
    record: RunRecord,
    scripts: Scripts,
    editor: Mapping[str, Any],
) -> dict[str, Any]:
    """The content of `episode.json`, schema version 1. `run` names the run; one that was resumed keeps its name.

    `tool_call_counts` is agent → tool → calls: `execute_code` and `load_skill` as the model called them,
    `fetch_url` as the guest did, however each call ended. Times are in seconds, and `started` counts from the start
    of the run; what an interrupted run did before its resumption is in all of it, the pause in between is not.
    """
    han = han_count(scripts.simplified)
    episode: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "day": day.isoformat(),
        "run": record.run,
        "show": {
            "name": show.name,
            "title": show.title.model_dump(),
            "about": show.about.model_dump(),
            "listeners": show.clock.listeners,
            "out_of_season": show.out_of_season(day),
        },
        "model": {"kind": model.kind, "name": model.name, "rehearsal": model.rehearsal},
        "isolation": dataclasses.asdict(isolation),
        "tool_call_counts": record.counts.as_dict(),
        "rejected_tool_calls": record.counts.rejected(),
        "tokens": record.tokens,
        "fetches": [_fetch(timed) for timed in record.host_calls if timed.call.name == "fetch_url"],
        "executions": [_execution(run) for run in record.executions],
        "script": {
            "han_characters": han,
            "drafts": len(record.drafts),
            "estimated_minutes": round(han / HAN_PER_MINUTE, 2),
            "simplified_sha256": _sha256(scripts.simplified),
            "traditional_sha256": _sha256(scripts.traditional),
        },
        "editor": dict(editor),
        "seconds": {
            "total": round(record.elapsed(), 3),
            "steps": {step: round(spent, 3) for step, spent in record.step_seconds.items()},
            "executions": [_execution_seconds(run) for run in record.executions],
            "timeline": [
                {"step": span.step, "started": round(span.started, 3), "seconds": round(span.seconds, 3)}
                for span in record.spans()
            ],
        },
        "resumed": record.resumed,
        "versions": _versions(),
    }
    if model.rehearsal:
        episode["note"] = f"{REHEARSAL_NOTE} {REHEARSAL_NOTE_IN_HAN}"
    return episode


def _fetch(timed: TimedCall) -> dict[str, Any]:
    call = timed.call
    fetch = call.fetch
    return {
        "agent": timed.agent,
        "status": call.status,
        "reason": call.reason,
        "url": fetch and fetch.url,
        "final_url": fetch and fetch.final_url,
        "http_status": fetch and fetch.http_status,
        "sha256": fetch and fetch.sha256,
        "title": fetch and fetch.title,
        "started": round(timed.started, 4),
        "seconds": round(call.seconds, 4),
    }


def _execution(run: CodeRun) -> dict[str, Any]:
    return {
        "agent": run.agent,
        "kind": run.kind,
        "exit_code": run.exit_code,
        "started": round(run.started, 4),
        "seconds": round(run.seconds, 4),
        "code": _shortened(run.code),
        "stdout": _shortened(run.stdout),
        "stderr": _shortened(run.stderr),
    }


def _shortened(text: str) -> str:
    if len(text) <= MOST_KEPT:
        return text
    return f"{text[:MOST_KEPT]}\n… {len(text) - MOST_KEPT} more characters\n"


def _execution_seconds(run: CodeRun) -> dict[str, Any]:
    return {"agent": run.agent, "kind": run.kind, "seconds": round(run.seconds, 4)}


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
