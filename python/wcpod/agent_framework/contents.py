"""What a run gives back to the framework: text, files with their media types, errors."""

from __future__ import annotations

import mimetypes

from agent_framework import Content

from wcpod.agent_framework.configuration import OutputLimits
from wcpod.control_characters import neutralise, one_line
from wcpod.sandbox import ExecutionResult
from wcpod.sandbox.rendering import DETAIL_CHARACTERS, KIND_NOTES

_NAME_CHARACTERS = 100
NOTHING_PRINTED = "The code ran and printed nothing. Use print(...) to see a result."
TRUNCATED = "The output was longer than its limit, and its middle is missing. Print less."


def contents_of(result: ExecutionResult, limits: OutputLimits) -> list[Content]:
    """What was printed, the files below /output, the value of a last expression, and how it failed.

    A failure is there twice: as text, because the clients send nothing but text to the model, and as an error for the
    host's own code. Each item has the `ExecutionResult` as its `raw_representation`.
    """
    contents = [_text(result.stdout, result)] if result.stdout else []
    files, left_out = _files(result, limits)
    contents += files
    if result.value is not None:
        contents.append(_text(f"Value of the last expression: {result.value}", result))
    notes = [TRUNCATED] if result.truncated is not None else []
    contents += [_text(note, result) for note in [*notes, *left_out]]
    if result.ok:
        if result.stderr:
            contents.append(_text(result.stderr, result))
        return contents or [_text(NOTHING_PRINTED, result)]
    details = failure_of(result)
    contents.append(_text(f"Execution error: {details}", result))
    contents.append(Content.from_error(message="Execution error", error_details=details, raw_representation=result))
    return contents


def failure_of(result: ExecutionResult) -> str:
    """Why a run failed: what the host knows, then what the code wrote to its standard error."""
    detail = (result.detail or "")[:DETAIL_CHARACTERS]
    parts = [part for part in (KIND_NOTES[result.kind], detail, result.stderr) if part]
    return neutralise("\n".join(parts)) or f"The code ended with exit code {result.exit_code}."


def refusal(details: str) -> list[Content]:
    """The answer to code that was not run."""
    return [
        Content.from_text(f"Execution error: {details}"),
        Content.from_error(message="Execution error", error_details=details),
    ]


def _text(text: str, result: ExecutionResult) -> Content:
    return Content.from_text(neutralise(text), raw_representation=result)


def _files(result: ExecutionResult, limits: OutputLimits) -> tuple[list[Content], list[str]]:
    """The files that fit, in the order of their names, and a line on those that do not."""
    fitting: list[Content] = []
    left_out: list[str] = []
    space = limits.total_bytes
    for name, data in sorted(result.files.items()):
        if len(fitting) < limits.files and len(data) <= min(limits.file_bytes, space):
            space -= len(data)
            fitting.append(
                Content.from_data(
                    data=data,
                    media_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
                    additional_properties={"path": f"/output/{name}"},
                    raw_representation=result,
                )
            )
        else:
            left_out.append(f"/output/{one_line(name, _NAME_CHARACTERS)} ({len(data)} bytes)")
    if not left_out:
        return fitting, []
    shown = ", ".join(left_out[: limits.files])
    most = f"{limits.files} files, {limits.file_bytes} bytes each, {limits.total_bytes} bytes together"
    return fitting, [f"{len(left_out)} files were not attached (at most {most}): {shown}"]
