"""Progress of a run for people: live on a terminal (rich), plain lines in a log."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.text import Text

from wcpod.control_characters import neutralise
from wcpod.podcast.episode import REHEARSAL_NOTE
from wcpod.podcast.progress import (
    STEPS,
    CodeEnded,
    CodeStarted,
    DraftReturned,
    EpisodeSaved,
    Event,
    HostCalled,
    Listener,
    RunResumed,
    SearchReturned,
    SkillLoaded,
    StepEnded,
    StepStarted,
)

_CODE_LINES = 12


@contextlib.contextmanager
def progress_on(stream: TextIO, *, rehearsal: bool) -> Iterator[Listener]:
    """A listener that shows a run on `stream`; live if that is a terminal, else one line an event."""
    if stream.isatty():
        console = Console(file=stream, highlight=False)
        if rehearsal:
            console.print(Text(REHEARSAL_NOTE, style="yellow"))
        now = Now()
        with console.status(now):
            yield LiveProgress(console, now)
    else:
        if rehearsal:
            print(REHEARSAL_NOTE, file=stream, flush=True)
        yield PlainProgress(stream)


class Now:
    """What is going on, in one line that is made again each time it is drawn: step, time, pages, tries."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._step = ""
        self._step_started = self._started
        self._tries: dict[str, int] = {}
        self._pages = 0

    def note(self, event: Event) -> None:
        """Take note of an event."""
        if isinstance(event, StepStarted):
            self._step, self._step_started = event.step, time.monotonic()
            self._tries[event.step] = self._tries.get(event.step, 0) + 1
        elif isinstance(event, HostCalled) and event.call.name == "fetch_url" and event.call.status == "ok":
            self._pages += 1

    def __rich__(self) -> Text:
        """The line as it is now."""
        now = time.monotonic()
        if self._step not in STEPS:
            return Text("starting the sandbox")
        parts = [
            f"step {STEPS.index(self._step) + 1} of {len(STEPS)}: {self._step}",
            f"{now - self._step_started:.0f} s of {now - self._started:.0f} s",
            f"{self._pages} {'page' if self._pages == 1 else 'pages'} read",
        ]
        if self._tries[self._step] > 1:
            parts.append(f"try {self._tries[self._step]}")
        return Text(", ".join(parts))


class PlainProgress:
    """One line an event, with the seconds since the start."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Write the event, if it has something to say."""
        if line := describe(event):
            # A reader that went away, a full disk or another encoding is no reason to end the run.
            with contextlib.suppress(OSError, UnicodeError):
                print(f"{time.monotonic() - self._started:7.2f}s  {line}", file=self._stream, flush=True)


class LiveProgress:
    """Lines that stay, and below them what is going on now."""

    def __init__(self, console: Console, now: Now) -> None:
        self._console = console
        self._now = now

    def __call__(self, event: Event) -> None:
        """Show the event."""
        self._now.note(event)
        if isinstance(event, CodeStarted):
            self._print_code(event.code)
        elif not isinstance(event, StepStarted) and (line := describe(event)):
            style = "green" if isinstance(event, StepEnded | EpisodeSaved) else "red" if _went_wrong(event) else ""
            self._console.print(Text(line, style=style))

    def _print_code(self, code: str) -> None:
        lines = neutralise(code).splitlines()
        shown = lines[:_CODE_LINES]
        if len(lines) > len(shown):
            shown.append(f"… {len(lines) - len(shown)} more lines")
        for line in shown:
            self._console.print(Text(f"    │ {line}", style="dim"), no_wrap=True, overflow="ellipsis")


def describe(event: Event) -> str:
    """The event in one line without control characters; empty if it is only the beginning of something."""
    match event:
        case StepEnded(step, seconds):
            return f"done    {step} ({seconds:.1f} s)"
        case SkillLoaded(agent, skill):
            return f"skill   {agent}: {neutralise(skill)}"
        case CodeEnded(agent, _, result):
            reason = f": {_last_line(result.stderr)}" if result.kind == "error" else ""
            return f"code    {agent}: {result.kind} in {result.usage.seconds * 1000:.0f} ms{reason}"
        case HostCalled(agent, call):
            about = (call.fetch.url if call.fetch is not None else call.name) or call.name
            reason = f" ({call.reason})" if call.status != "ok" and call.reason else ""
            return neutralise(f"fetch   {agent}: {call.status} {about}{reason}").replace("\n", " ")
        case DraftReturned(draft, problems):
            return neutralise(f"draft   {draft} goes back: {' '.join(problems)}").replace("\n", " ")
        case SearchReturned(search, problem):
            return neutralise(f"search  {search} goes back: {problem}").replace("\n", " ")
        case EpisodeSaved(files):
            return f"saved   {files[0].parent}"
        case RunResumed(after):
            return f"resume  after {after}"
        case StepStarted(step):
            return f"start   {step}"
        case _:
            return ""


def _last_line(text: str) -> str:
    lines = [line for line in neutralise(text).splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _went_wrong(event: Event) -> bool:
    match event:
        case CodeEnded(_, _, result):
            return result.kind != "ok"
        case HostCalled(_, call):
            return call.status != "ok"
        case DraftReturned() | SearchReturned():
            return True
        case _:
            return False
