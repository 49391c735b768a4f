"""Saving an episode: whole or not at all, one run at a time."""

from __future__ import annotations

import datetime as dt
import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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


FILES = ("260615.simple.zh.txt", "260615.tranditional.zh.txt")


def with_files(record: dict[str, Any], folder: DayFolder) -> dict[str, Any]:
    """The record as it is written: with the hashes of the files beside it."""
    digests = {name: hashlib.sha256((folder.path / name).read_bytes()).hexdigest() for name in FILES}
    return {**record, "files": digests}


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
    assert json.loads(files[2].read_text(encoding="utf-8")) == with_files(REHEARSAL, folder)
    assert sorted(contents(folder)) == sorted(path.name for path in files)


def test_saving_twice_replaces_everything(folder: DayFolder) -> None:
    save_scripts(Scripts("旧", "舊"), folder, REHEARSAL)
    save_scripts(Scripts("新", "新"), folder, REAL)
    assert contents(folder) == {
        "260615.simple.zh.txt": "新\n".encode(),
        "260615.tranditional.zh.txt": "新\n".encode(),
        "episode.json": (json.dumps(with_files(REAL, folder), indent=2) + "\n").encode(),
    }


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("before", [False, True], ids=["new day", "existing day"])
def test_a_failing_replace_leaves_the_day_as_it_was(
    folder: DayFolder, monkeypatch: pytest.MonkeyPatch, failing: int, before: bool
) -> None:
    if before:
        save_scripts(Scripts("旧", "舊"), folder, REAL)
    earlier = contents(folder)
    replace, calls = os.rename, []

    def full_disk(source: str, target: str, **folders: int) -> None:
        calls.append(target)
        if len(calls) == failing + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target, **folders)

    monkeypatch.setattr(os, "rename", full_disk)
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
    (folder.path / ".writing-dead").mkdir(0o700)
    os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", program], check=False)
    assert (folder.path / ".writing-dead").exists()
    with folder.lock():
        assert contents(folder) == {}


NAMES = ["/etc/passwd", "../x", "a/b", ".profile", "", "..", "README.txt", 5, None]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dropped", [False, True])
def test_a_list_with_a_name_that_is_not_expected_moves_nothing(folder: DayFolder, name: Any, dropped: bool) -> None:
    """Somebody may have put it there: an `outputs` folder out of a repository."""
    (folder.path / "README.txt").parent.mkdir(parents=True)
    (folder.path / "README.txt").write_text("mine")
    scratch = folder.path / ".writing-x"
    scratch.mkdir(0o700)
    (scratch / "moving.json").write_text(json.dumps([[], [name]] if dropped else [[name, "260615.x"], []]))
    (scratch / "260615.x").write_text("not moved yet")
    before = sorted(folder.out.rglob("*"))
    with folder.lock():
        pass
    assert sorted(folder.out.rglob("*")) == before


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707])
def test_a_scratch_folder_that_is_not_ours_alone_stays(folder: DayFolder, mode: int) -> None:
    folder.path.mkdir(parents=True)
    (folder.path / "260615.notes.md").write_text("mine")
    scratch = folder.path / ".writing-x"
    scratch.mkdir()
    scratch.chmod(mode)
    (scratch / "moving.json").write_text(json.dumps([[], ["260615.notes.md"]]))
    with folder.lock():
        pass
    assert (folder.path / "260615.notes.md").read_text() == "mine"
    assert scratch.is_dir()


@pytest.mark.parametrize("kind", ["link to a folder", "link to a list", "pipe", "file"])
def test_links_and_pipes_among_the_scratch_are_left_alone(folder: DayFolder, kind: str, tmp_path: Path) -> None:
    folder.path.mkdir(parents=True)
    (folder.path / "260615.notes.md").write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    (elsewhere / "moving.json").write_text(json.dumps([[], ["260615.notes.md"]]))
    scratch = folder.path / ".writing-x"
    if kind == "link to a folder":
        scratch.symlink_to(elsewhere)
    elif kind == "file":
        scratch.write_text("x")
    else:
        scratch.mkdir(0o700)
        if kind == "pipe":
            os.mkfifo(scratch / "moving.json")
        else:
            (scratch / "moving.json").symlink_to(elsewhere / "moving.json")
    with folder.lock():
        pass
    assert (folder.path / "260615.notes.md").read_text() == "mine"
    assert (elsewhere / "moving.json").exists()


def test_what_an_operator_put_beside_an_episode_stays(folder: DayFolder) -> None:
    save_scripts(Scripts("旧", "舊"), folder, REHEARSAL, {"notes.md": b"old", "rss.xml": b"old", "mp3": b"old"})
    own = ["260615.my-notes.txt", "260615.wav", "260615.report.html", "README.txt", ".hidden"]
    for name in own:
        (folder.path / name).write_text("mine")
    (folder.path / "260615.rss.xml").write_text("changed by hand")
    (folder.path / "260615.folder").mkdir()
    save_scripts(Scripts("新", "新"), folder, REAL, {"notes.md": b"new"})
    assert {name: (folder.path / name).read_text() for name in own} == dict.fromkeys(own, "mine")
    assert (folder.path / "260615.rss.xml").read_text() == "changed by hand"
    assert (folder.path / "260615.folder").is_dir()
    assert (folder.path / "260615.notes.md").read_bytes() == b"new"
    assert not (folder.path / "260615.mp3").exists()


def test_a_product_does_not_replace_a_file_that_no_episode_wrote(folder: DayFolder) -> None:
    save_scripts(Scripts("旧", "舊"), folder, REHEARSAL)
    (folder.path / "260615.mp3").write_text("mine")
    with pytest.raises(PipelineError) as raised:
        save_scripts(Scripts("新", "新"), folder, REAL, {"mp3": b"new"})
    assert str(raised.value) == (
        f"cannot write the episode into {folder.path}: 260615.mp3 is there and not of an episode; move it away"
    )
    assert (folder.path / "260615.mp3").read_text() == "mine"
    assert folder.existing() == "rehearsal"


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_no_link_pipe_or_folder_is_replaced_or_read(folder: DayFolder, kind: str, tmp_path: Path) -> None:
    folder.path.mkdir(parents=True)
    (tmp_path / "elsewhere").write_text("mine")
    if kind == "link":
        folder.episode.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(folder.episode)
    else:
        folder.episode.mkdir()
    assert folder.existing() == "episode"
    with pytest.raises(PipelineError, match=r"cannot write the episode into .*: episode\.json is no plain file"):
        save_scripts(Scripts("新", "新"), folder, REAL)
    assert (tmp_path / "elsewhere").read_text() == "mine"
    assert [path.name for path in folder.path.iterdir()] == ["episode.json"]


def test_a_day_that_is_a_link_is_refused(folder: DayFolder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.out.mkdir()
    folder.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PipelineError) as raised, folder.lock():
        pass
    assert str(raised.value) == f"cannot use the folder {folder.path}: it is a link"


def test_only_drafts_are_removed_from_their_folder(folder: DayFolder) -> None:
    folder.keep_drafts(["one", "two"])
    (folder.drafts / "mine.md").write_text("mine")
    folder.keep_drafts(["three"])
    assert {path.name: path.read_text() for path in folder.drafts.iterdir()} == {
        "draft-1.md": "three\n",
        "mine.md": "mine",
    }
    save_scripts(Scripts("新", "新"), folder, REAL)
    assert [path.name for path in folder.drafts.iterdir()] == ["mine.md"]
    (folder.drafts / "mine.md").unlink()
    folder.keep_drafts(["four"])
    save_scripts(Scripts("新", "新"), folder, REAL)
    assert not folder.drafts.exists()


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff", b"{}", b"[]", b'{"model": 5}'])
def test_a_damaged_record_is_an_episode_that_is_kept(folder: DayFolder, content: bytes) -> None:
    folder.path.mkdir(parents=True)
    folder.episode.write_bytes(content)
    assert folder.existing() == "episode"
