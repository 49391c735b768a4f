"""Writes the table of a fetch beyond the network into SPECIFICATION.md: `python benches/fetch_specification.py ROWS`.

ROWS is what `cargo bench -p egress --bench call` printed.
"""

from __future__ import annotations

import datetime as dt
import os
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- fetch: begin -->", "<!-- fetch: end -->"
COMMAND = "cargo bench -p egress --bench call"


def processor() -> str:
    """The processor's name as the kernel tells it."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def main() -> None:
    printed = Path(sys.argv[1]).read_text(encoding="utf-8")
    rows = [line for line in printed.splitlines() if line.startswith("| ")]
    if not rows:
        sys.exit(f"{sys.argv[1]} holds no row")
    lines = [
        f"Machine: {processor()}, {os.cpu_count()} cores, Linux {platform.release()}, shared with other work. "
        f"Date: {dt.datetime.now(dt.UTC):%Y-%m-%d}. Command: `{COMMAND}`. Times in milliseconds.",
        "",
        "| what | median | p99 | count |",
        "|---|---|---|---|",
        *rows,
    ]
    path = ROOT / "SPECIFICATION.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{chr(10).join(lines)}\n{END}{after}", encoding="utf-8")
    print(f"{path.name}: {len(rows)} rows of a fetch written")


if __name__ == "__main__":
    main()
