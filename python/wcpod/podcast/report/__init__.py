"""The report of an episode: one HTML page that needs nothing else, no script and no network.

Everything in it comes from the files of the day, most of it from pages and models: it is escaped by the template
engine, control characters are written out, only https links are links, and the page's own policy forbids it the rest.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined, UndefinedError

from wcpod.control_characters import neutralise
from wcpod.exceptions import PipelineError
from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.plain_files import read_plain_file
from wcpod.podcast.report.sourced_script import SourcedScript
from wcpod.podcast.report.timeline import Timeline
from wcpod.podcast.sources import sources_of

SCHEMA_VERSION = 1


def report_of(folder: DayFolder) -> str:
    """The page for the episode in `folder`.

    Raises:
        PipelineError: if there is no complete episode, or its record is not one that this version reads.
    """
    episode = _episode(folder)
    try:
        scripts = {
            "simplified": read_plain_file(folder.simplified).decode(),
            "traditional": read_plain_file(folder.traditional).decode(),
        }
        sources = sources_of(episode)
        page: str = _template().render(
            episode=episode,
            simplified=SourcedScript.of(scripts["simplified"], episode, sources),
            traditional=_paragraphs(scripts["traditional"]),
            sources=sources,
            timeline=Timeline.of(episode),
            agents=_agents(episode),
        )
        return page
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"cannot read the scripts in {folder.path}: {error}") from error
    except (KeyError, TypeError, AttributeError, UndefinedError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise PipelineError(f"{folder.episode} is not the record of an episode: {reason}") from error


def _episode(folder: DayFolder) -> dict[str, Any]:
    try:
        episode: dict[str, Any] = json.loads(read_plain_file(folder.episode))
        version = episode["schema_version"]
    except FileNotFoundError:
        raise PipelineError(f"there is no episode in {folder.path}") from None
    except OSError as error:
        raise PipelineError(f"cannot read {folder.episode}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise PipelineError(f"{folder.episode} is damaged: it is not JSON ({error}); write the day again") from error
    except (KeyError, TypeError) as error:
        raise PipelineError(f"{folder.episode} is not the record of an episode: it has no schema_version") from error
    if version != SCHEMA_VERSION:
        raise PipelineError(f"{folder.episode} has schema version {version!r}; this wcpod reads {SCHEMA_VERSION}")
    return episode


def _agents(episode: dict[str, Any]) -> list[dict[str, Any]]:
    """For each agent its counters, tokens and runs."""
    counts, tokens = episode["tool_call_counts"], episode["tokens"]
    names = dict.fromkeys([*tokens, *counts])
    return [
        {
            "name": name,
            "seconds": episode["seconds"]["steps"].get(name, 0.0),
            "counts": counts.get(name, {}),
            "rejected": episode["rejected_tool_calls"].get(name, 0),
            "tokens": tokens.get(name, {}),
            "runs": [run for run in episode["executions"] if run["agent"] == name],
        }
        for name in names
    ]


def _paragraphs(script: str) -> list[str]:
    return [paragraph for paragraph in script.splitlines() if paragraph.strip()]


def _template() -> Any:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: neutralise(value) if type(value) is str else value,
    )
    return environment.from_string(resources.files(__name__).joinpath("page.html.j2").read_text(encoding="utf-8"))
