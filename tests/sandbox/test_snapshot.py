"""Snapshots: taken, brought back, saved, loaded, refused, kept between processes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wcpod import Limits, Sandbox, Snapshot
from wcpod.exceptions import SnapshotError
from wcpod.sandbox.image import CACHE_VARIABLE

pytestmark = pytest.mark.microvm


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot on disk."""
    folder = tmp_path_factory.mktemp("snapshot") / "state"
    with Sandbox() as made:
        made.snapshot().save(folder)
    return folder


def copied(folder: Path, target: Path) -> Path:
    subprocess.run(["cp", "-r", str(folder), str(target)], check=True)
    return target


def largest_blob(folder: Path) -> Path:
    return max((folder / "blobs" / "sha256").iterdir(), key=lambda path: path.stat().st_size)


def test_what_a_run_left_can_be_the_base_of_later_ones() -> None:
    with Sandbox() as made:
        clean = made.snapshot()
        made.run("import wave\nopen('/tmp/kept', 'w').write('here')")
        warm = made.snapshot(of_last_run=True)
        look = "import sys, os\nprint('wave' in sys.modules, os.path.exists('/tmp/kept'))"
        assert made.run(look).stdout == "False False\n"
        made.restore(warm)
        assert made.run(look + "\nos.remove('/tmp/kept')").stdout == "True True\n"
        assert made.run(look).stdout == "True True\n"
        made.restore(clean)
        assert made.run(look).stdout == "False False\n"
        with Sandbox(snapshot=warm) as another:
            assert another.run(look).stdout == "True True\n"


def test_a_run_that_was_stopped_leaves_nothing_to_keep(slowness: float) -> None:
    with Sandbox(limits=Limits(seconds=0.2 * slowness)) as made:
        made.run("while True: pass")
        with pytest.raises(SnapshotError, match="poisoned"):
            made.snapshot(of_last_run=True)
        assert made.run("print('ok')").stdout == "ok\n"


def test_another_process_starts_from_it(saved: Path) -> None:
    code = (
        "import sys\nfrom wcpod import Sandbox, Snapshot\n"
        "with Sandbox(snapshot=Snapshot.load(sys.argv[1])) as s:\n"
        "    print(s.run('import time, os; print(time.time(), os.urandom(8).hex())').stdout)"
    )
    command = [sys.executable, "-c", code, str(saved)]
    outputs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert abs(float(outputs[0][0]) - time.time()) < 60
    assert outputs[0][1] != outputs[1][1]


def test_one_that_is_damaged_is_refused_with_the_reason(saved: Path, tmp_path: Path) -> None:
    folder = copied(saved, tmp_path / "state")
    blob = largest_blob(folder)
    with blob.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"damaged")
    with pytest.raises(SnapshotError, match=rf"the snapshot in {folder} is refused: "):
        Snapshot.load(folder)
    blob.write_bytes(blob.read_bytes()[:1000])
    with pytest.raises(SnapshotError, match="is refused"):
        Snapshot.load(folder)


def test_one_that_others_may_write_to_is_refused(saved: Path, tmp_path: Path) -> None:
    folder = copied(saved, tmp_path / "state")
    folder.chmod(0o777)
    with pytest.raises(SnapshotError, match=f"others may write to {folder}"):
        Snapshot.load(folder)


def test_a_folder_without_one_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(SnapshotError, match="is refused"):
            Snapshot.load(folder)


def test_a_folder_that_is_not_empty_is_not_written_to(saved: Path) -> None:
    with Sandbox() as made, pytest.raises(SnapshotError, match="is not empty"):
        made.snapshot().save(saved)


def test_the_cache_is_filled_used_and_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))

    def boot_seconds() -> float:
        with Sandbox() as made:
            assert made.run("print('ok')").stdout == "ok\n"
            return made._vm.boot_seconds

    assert boot_seconds() > 0
    (state,) = (tmp_path / "cache").iterdir()
    assert state.stat().st_mode & 0o777 == 0o700
    assert boot_seconds() == 0  # nothing was booted
    assert caplog.record_tuples == []
    largest_blob(state).write_bytes(b"damaged")
    assert boot_seconds() > 0
    ((logger, level, text),) = caplog.record_tuples
    assert (logger, level) == ("wcpod.sandbox.sandbox", logging.WARNING)
    assert text.startswith("a kept clean state could not be used: ")
    assert str(state) in text
    assert boot_seconds() == 0


def test_processes_may_fill_the_cache_at_once(tmp_path: Path) -> None:
    code = "from wcpod import Sandbox\nwith Sandbox() as s: print(s.run('print(1)').stdout, end='')"
    environment = {**os.environ, CACHE_VARIABLE: str(tmp_path / "cache")}
    command = [sys.executable, "-c", code]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(3)]
    assert [child.communicate()[0] for child in children] == [b"1\n"] * 3
    assert [path.name.startswith(".") for path in (tmp_path / "cache").iterdir()] == [False]


def test_the_cache_can_be_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    Sandbox(cache=False).close()
    assert not (tmp_path / "cache").exists()


def test_inputs_take_the_place_of_those_that_were_captured(sandbox: Sandbox) -> None:
    show = "print(open('/input/a.txt').read())"
    assert sandbox.run(show, inputs={"a.txt": b"old"}).stdout == "old\n"
    with Sandbox(snapshot=sandbox.snapshot(of_last_run=True)) as made:
        assert made.run(show).stdout == "old\n"
        assert made.run(show, inputs={"a.txt": b"new"}).stdout == "new\n"


@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
def test_the_note_of_what_was_checked_is_a_plain_file_or_not_read(saved: Path, tmp_path: Path, kind: str) -> None:
    """A state out of an archive can hold anything under that name."""
    folder = copied(saved, tmp_path / "state")
    note, precious = folder / "checked.json", tmp_path / "precious"
    precious.write_text("mine")
    note.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(note)
    else:
        note.symlink_to(precious if kind == "link" else "/dev/zero")
    with Sandbox(snapshot=Snapshot.load(folder)) as made:
        assert made.run("print(1)").stdout == "1\n"
    assert precious.read_text() == "mine"
    assert note.is_file()
    assert not note.is_symlink()


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_whose_parent_others_may_write_to_is_refused(saved: Path, tmp_path: Path, mode: int) -> None:
    above = tmp_path / "above"
    above.mkdir()
    folder = copied(saved, above / "state")
    above.chmod(mode)
    with pytest.raises(SnapshotError, match=r"others may write to .*above, above it"):
        Snapshot.load(folder)
    above.chmod(mode | 0o1000)
    Snapshot.load(folder)


def test_a_cache_among_other_things_leaves_them_alone(tmp_path: Path) -> None:
    names = [f"project-{number}" for number in range(8)]
    for number, name in enumerate(names):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.txt").write_text("years of work")
        os.utime(tmp_path / name, (1e9 + number, 1e9 + number))
    (tmp_path / "link").symlink_to("/etc")
    program = "from wcpod import Sandbox; print(Sandbox().run('print(1)').stdout)"
    environment = {**os.environ, CACHE_VARIABLE: str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert all((tmp_path / name / "thesis.txt").read_text() == "years of work" for name in names)
    assert len(list(tmp_path.iterdir())) == len(names) + 2  # and one state


def test_a_cache_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    program = "from wcpod import Sandbox; print(Sandbox().run('print(1)').stdout, end='')"
    environment = {**os.environ, CACHE_VARIABLE: str(shared / "states")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
    assert list(shared.iterdir()) == []
