"""Saving an episode: whole or not at all, one run at a time."""

from __future__ import annotations

import datetime as dt
import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from wcpod.exceptions import PipelineError
from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.scripts import Scripts, save_scripts

DAY = dt.date(2026, 6, 15)
REHEARSAL = {"model": {"rehearsal": True}}
REAL = {"model": {"rehearsal": False}}


@pytest.fixture
def folder(tmp_path: Path) -> DayFolder:
    return DayFolder(tmp_path / "outputs", DAY)


def contents(folder: DayFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.path.iterdir()} if folder.path.exists() else {}


def test_names_and_bytes(folder: DayFolder) -> None:
    files = save_scripts(Scripts("简\n\n体", "繁"), folder, REHEARSAL)
    assert [str(path.relative_to(folder.out)) for path in files] == [
        "260615/260615.simple.zh.txt",
        "260615/260615.tranditional.zh.txt",
        "260615/episode.json",
    ]
    assert files[0].read_bytes() == "简\n\n体\n".encode()
    assert files[1].read_bytes() == "繁\n".encode()
    assert json.loads(files[2].read_text(encoding="utf-8")) == REHEARSAL
    assert sorted(contents(folder)) == sorted(path.name for path in files)


def test_saving_twice_replaces_everything(folder: DayFolder) -> None:
    save_scripts(Scripts("旧", "舊"), folder, REHEARSAL)
    save_scripts(Scripts("新", "新"), folder, REAL)
    assert contents(folder) == {
        "260615.simple.zh.txt": "新\n".encode(),
        "260615.tranditional.zh.txt": "新\n".encode(),
        "episode.json": (json.dumps(REAL, indent=2) + "\n").encode(),
    }


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("before", [False, True], ids=["new day", "existing day"])
def test_a_failing_replace_leaves_the_day_as_it_was(
    folder: DayFolder, monkeypatch: pytest.MonkeyPatch, failing: int, before: bool
) -> None:
    if before:
        save_scripts(Scripts("旧", "舊"), folder, REAL)
    earlier = contents(folder)
    replace, calls = Path.replace, []

    def full_disk(source: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == failing + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", full_disk)
    with pytest.raises(PipelineError) as raised:
        save_scripts(Scripts("新", "新"), folder, REAL)
    assert str(raised.value) == f"cannot write the episode into {folder.path}: No space left on device"
    assert contents(folder) == earlier


def test_a_full_disk_leaves_the_day_as_it_was(folder: DayFolder) -> None:
    save_scripts(Scripts("旧", "舊"), folder, REAL)
    earlier = contents(folder)
    program = f"""
import resource, signal, datetime as dt
from pathlib import Path
from wcpod.podcast.day_folder import DayFolder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
folder = DayFolder(Path({str(folder.out)!r}), dt.date(2026, 6, 15))
folder.publish("新" * 2000, "新", {{"model": {{"rehearsal": False}}}})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "PipelineError: cannot write the episode into" in done.stderr
    assert contents(folder) == earlier


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("a file")
    folder = DayFolder(tmp_path / "outputs", DAY)
    with pytest.raises(PipelineError, match="cannot write the episode into"):
        save_scripts(Scripts("简", "繁"), folder, REAL)
    with pytest.raises(PipelineError, match="cannot use the folder"), folder.lock():
        pass


def test_what_a_day_holds(folder: DayFolder) -> None:
    assert folder.existing() == "nothing"
    save_scripts(Scripts("简", "繁"), folder, REHEARSAL)
    assert folder.existing() == "rehearsal"
    save_scripts(Scripts("简", "繁"), folder, REAL)
    assert folder.existing() == "episode"
    folder.episode.write_text("not JSON")
    assert folder.existing() == "episode"
    folder.episode.unlink()
    assert folder.existing() == "episode"


def test_one_run_at_a_time(folder: DayFolder) -> None:
    with folder.lock():
        with pytest.raises(PipelineError) as raised, folder.lock():
            pass
        assert str(raised.value) == f"another run is writing {folder.path}; wait for it to end"
        with DayFolder(folder.out, dt.date(2026, 6, 16)).lock():
            pass
    with folder.lock():
        pass
    assert not folder.path.exists()


def test_a_dead_run_holds_no_lock_and_leaves_no_rest(folder: DayFolder) -> None:
    program = f"""
import os, datetime as dt
from pathlib import Path
from wcpod.podcast.day_folder import DayFolder
folder = DayFolder(Path({str(folder.out)!r}), dt.date(2026, 6, 15))
with folder.lock():
    (folder.path / ".writing-dead").mkdir()
    os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", program], check=False)
    assert (folder.path / ".writing-dead").exists()
    with folder.lock():
        assert contents(folder) == {}
