"""The main job as its operator starts it: a process of its own, cold, within its bounds."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wcpod.sandbox.image import CACHE_VARIABLE

MOST_RESIDENT_KIB = 400_000_000 // 1024
MOST_SECONDS = 60

# A child's peak begins with that of the process it was forked from, and pytest's is large: so a small one starts it.
PEAK = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(child.returncode)
"""


@pytest.mark.microvm
def test_the_run_stays_within_memory_and_time(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "wcpod", "run", "--out", str(tmp_path / "outputs")]
    environment = {**os.environ, CACHE_VARIABLE: str(tmp_path / "cache")}
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", PEAK, *command], capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert time.monotonic() - begin < MOST_SECONDS
    assert int(done.stderr.splitlines()[-1]) < MOST_RESIDENT_KIB
    stamp = dt.date.today().strftime("%y%m%d")
    folder = tmp_path / "outputs" / stamp
    names = {path.name for path in folder.iterdir()}
    assert {f"{stamp}.simple.zh.txt", f"{stamp}.tranditional.zh.txt", "episode.json"} <= names
    episode = json.loads((folder / "episode.json").read_text(encoding="utf-8"))
    assert episode["tool_call_counts"]["SearchAgent"]["fetch_url"] == len(episode["fetches"])
    assert b"REHEARSAL" in done.stdout


@pytest.mark.microvm
def test_every_fetch_is_noted_beside_the_episode(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "wcpod", "run", "--out", str(tmp_path), "--date", "2026-06-15"]
    subprocess.run(command, capture_output=True, check=True)
    lines = [json.loads(line) for line in (tmp_path / "260615.audit.jsonl").read_text(encoding="utf-8").splitlines()]
    episode = json.loads((tmp_path / "260615" / "episode.json").read_text(encoding="utf-8"))
    assert [line["url"] for line in lines] == [fetch["url"] for fetch in episode["fetches"]]
    assert {line["agent"] for line in lines} == {"SearchAgent"}
    assert {line["decision"] for line in lines} == {"allow", "block"}


@pytest.mark.microvm
def test_a_replayed_run_gives_the_same_scripts(tmp_path: Path) -> None:
    def scripts(out: Path, *options: str) -> list[str]:
        command = [sys.executable, "-m", "wcpod", "run", "--date", "2026-06-15", "--out", str(out), *options]
        subprocess.run(command, capture_output=True, check=True)
        return [path.read_text(encoding="utf-8") for path in sorted((out / "260615").glob("*.zh.txt"))]

    first = scripts(tmp_path / "first", "--record", str(tmp_path / "pages"))
    assert len(first) == 2
    assert scripts(tmp_path / "second", "--archive", str(tmp_path / "pages")) == first
