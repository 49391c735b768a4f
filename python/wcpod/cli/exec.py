"""`wcpod exec`: run one Python file in the micro-VM."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from wcpod.cli.exit_codes import EXEC_NO_SANDBOX, EXEC_TIMEOUT, FAILED, fail
from wcpod.cli.interruption import interrupted
from wcpod.cli.options import LimitsOption, allow_host_option, archive_option, contact_option, limits_of
from wcpod.cli.standard_streams import write_through
from wcpod.control_characters import neutralise
from wcpod.exceptions import FetchPolicyError, WcpodError

if TYPE_CHECKING:
    from wcpod import ExecutionResult, FetchPolicy


@click.command("exec")
@click.argument("file", type=click.File("rb"))
@allow_host_option
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=30.0, show_default=True, help="Seconds."
)
@archive_option
@contact_option
@click.option("--limits", type=LimitsOption(), help="More limits, for example memory_mib=64,output_bytes=4096.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as one JSON object.")
def execute(
    file: Any,
    hosts: tuple[str, ...],
    timeout: float,
    archive: Path | None,
    contact: str | None,
    limits: dict[str, float] | None,
    as_json: bool,
) -> None:
    """Run one Python FILE (- for standard input) in the micro-VM.

    What the code prints goes to standard output and error while it runs; on a terminal its control characters are
    written out.

    \b
    Example:
      echo 'print(sum(range(10)))' | wcpod exec -
      wcpod exec --allow-host www.example.org --timeout 10 read_page.py

    \b
    Exit codes:
      the exit code of the code; 124 stopped at its time limit; 125 no usable sandbox; 130 interrupted; 143 terminated
    """
    try:
        source = file.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"the file is not UTF-8: byte {error.start}") from None

    from wcpod import AsyncSandbox, FetchPolicy

    def show(stream: str, text: str) -> None:
        _write(sys.stdout if stream == "stdout" else sys.stderr, text)

    async def run(policy: FetchPolicy | None) -> ExecutionResult:
        # Under asyncio Ctrl-C cancels the task, and that stops the guest.
        chosen = limits_of({"seconds": timeout, **(limits or {})})
        async with AsyncSandbox(policy=policy, archive=archive, contact=contact, limits=chosen) as sandbox:
            return await sandbox.run(source, on_output=None if as_json else show)

    try:
        result = asyncio.run(run(FetchPolicy(hosts) if hosts else None))
    except FetchPolicyError as error:
        raise click.UsageError(str(error)) from None
    except KeyboardInterrupt:
        fail(*interrupted())
    except WcpodError as error:
        fail(f"{error}\nTo check this machine: wcpod doctor", EXEC_NO_SANDBOX)
    if as_json:
        click.echo(json.dumps(_as_json(result), ensure_ascii=True))
    else:
        if result.kind not in ("ok", "error"):
            click.echo(
                f"wcpod: the run ended by {result.kind}" + (f": {result.detail}" if result.detail else ""), err=True
            )
        if result.truncated is not None:
            click.echo("wcpod: the output was longer than its limit", err=True)
    sys.exit(_exit_code(result))


def _exit_code(result: ExecutionResult) -> int:
    if result.kind == "timeout":
        return EXEC_TIMEOUT
    if result.kind == "ok":
        return result.exit_code & 0xFF
    return result.exit_code & 0xFF or FAILED


def _as_json(result: ExecutionResult) -> dict[str, Any]:
    fields = dataclasses.asdict(result)
    fields["files"] = {name: len(data) for name, data in result.files.items()}
    fields["ok"] = result.ok
    return fields


def _write(stream: TextIO, text: str) -> None:
    if stream.isatty():
        text = neutralise(text)
    write_through(stream, text)
