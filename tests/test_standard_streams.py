"""Standard output decides nothing: closed, full, read by nobody or of another encoding, files and exit codes stay."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from wcpod.podcast.models.rehearsal import SAMPLE_PAGES

WCPOD = f"{sys.executable} -m wcpod"
WAYS = {
    "closed": "{command} >&-",
    "full": "{command} >/dev/full",
    "both full": "{command} >/dev/full 2>/dev/full",
    "all closed": "{command} <&- >&- 2>&-",
    "a reader that goes": "{command} | true; exit ${{PIPESTATUS[0]}}",
    "a reader that goes early": "{command} | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}",
    "ascii": "PYTHONIOENCODING=ascii {command} >out.txt",
    "latin-1, strict": "PYTHONIOENCODING=latin-1:strict {command} >out.txt",
    "the C locale": "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 {command} >out.txt",
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


def shell(way: str, command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = way.format(command=f"{WCPOD} {command}")
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)


@ways
@pytest.mark.microvm
def test_an_episode_is_the_same(way: str, tmp_path: Path) -> None:
    done = shell(way, "run --date 2026-06-15 --out 節目", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((tmp_path / "節目" / "260615").iterdir())) == 5
    assert not (tmp_path / "節目" / "260615.checkpoints").exists()


@ways
@pytest.mark.microvm
def test_the_exit_code_of_exec_is_the_code_s(way: str, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("import sys\nprint('世' * 9)\nprint('界', file=sys.stderr)\nsys.exit(7)\n")
    for option in ("", "--json "):
        done = shell(way, f"exec {option}code.py", tmp_path)
        assert done.returncode == 7
        assert "Traceback" not in done.stderr


@ways
@pytest.mark.microvm
def test_doctor_report_and_help(way: str, tmp_path: Path) -> None:
    assert shell("{command}", "run --date 2026-06-15", tmp_path).returncode == 0
    for command in ("doctor", "report 260615", "report 260615 --to -", "--help", "run --help"):
        done = shell(way, command, tmp_path)
        assert (done.returncode, done.stderr) == (0, "")


@ways
def test_wrong_options_keep_their_exit_code(way: str, tmp_path: Path) -> None:
    done = shell(way, "run --date 世", tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.microvm
def test_standard_input_that_is_closed_is_an_empty_program(tmp_path: Path) -> None:
    done = shell("{command} <&-", "exec --json -", tmp_path)
    assert json.loads(done.stdout)["kind"] == "ok"


@pytest.mark.microvm
def test_a_standard_output_that_does_not_block_loses_nothing() -> None:
    program = f"""
import os, subprocess, sys, time
end, entry = os.pipe()
os.set_blocking(entry, False)
command = [*{WCPOD.split()!r}, "exec", "--limits", "output_bytes=1000000", "-"]
child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=entry)
os.close(entry)
child.stdin.write(b"for _ in range(20): print('x' * 9999)")
child.stdin.close()
time.sleep(2)
total = 0
while data := os.read(end, 65536):
    total += len(data)
print(total, child.wait())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "200000 0\n"


def test_no_file_of_ours_gets_the_number_of_a_closed_stream() -> None:
    program = (
        "from wcpod.cli.standard_streams import make_standard_streams_lossy as make\n"
        "make()\n"
        "import os\n"
        "numbers = [os.open('/', os.O_RDONLY) for _ in range(2)]\n"
        "os._exit(0 if min(numbers) > 2 else 1)"
    )
    script = f'{sys.executable} -c "{program}" <&- >&- 2>&-'
    assert subprocess.run(["bash", "-c", script], check=False).returncode == 0


def test_a_stream_drops_what_cannot_be_written_and_goes_on() -> None:
    program = """
import os, sys
from wcpod.cli.standard_streams import make_standard_streams_lossy
kept = os.dup(1)
os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
make_standard_streams_lossy()
print("lost", flush=True)
os.dup2(kept, 1)
print("kept \\udc80", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "kept \\udc80\n"


@pytest.mark.microvm
def test_pages_in_other_scripts_reach_an_ascii_terminal(tmp_path: Path) -> None:
    code = "print(call_tool('fetch_url', url='https://www.bbc.com/sport/football/world-cup')['STATUS'], '世')"
    (tmp_path / "code.py").write_text(code)
    command = [*WCPOD.split(), "exec", "--archive", str(SAMPLE_PAGES), "--allow-host", "www.bbc.com", "code.py"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert done.stdout.decode() == "ok 世\n"


@pytest.mark.microvm
@pytest.mark.parametrize("goes_away", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_terminal_of_another_encoding_or_that_goes_away(encoding: str, goes_away: bool, tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    command = [*WCPOD.split(), "run", "--date", "2026-06-15", "--out", "節目"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    pipes = {"stdout": terminal, "stderr": terminal}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes) as process:  # type: ignore[call-overload]
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(controller, 65536):
                shown += piece
                if goes_away:
                    break
        os.close(controller)
    assert process.returncode == 0
    assert b"Traceback" not in shown
    assert len(list((tmp_path / "節目" / "260615").iterdir())) == 5
