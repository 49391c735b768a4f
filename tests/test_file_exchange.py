"""Files replaced together, also when the process dies in between."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wcpod.podcast.file_exchange import clear_dead_exchanges, exchange_files

NEW = {"a": b"new a", "b": b"new b", "c": b"new c"}
OLD = {"a": b"old a", "b": b"old b", "d": b"old d"}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def lay(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)


def test_all_are_replaced_and_the_dropped_are_gone(tmp_path: Path) -> None:
    lay(tmp_path, OLD)
    exchange_files(tmp_path, NEW, drop=["d"])
    assert contents(tmp_path) == NEW


DIE_AT = """
import os, sys
from pathlib import Path
from wcpod.podcast import file_exchange
step, at = 0, int(sys.argv[2])
def counting(method):
    def counted(*arguments, **options):
        global step
        if step == at:
            os.kill(os.getpid(), 9)
        step += 1
        return method(*arguments, **options)
    return counted
os.rename, os.unlink = counting(os.rename), counting(os.unlink)
file_exchange.write_new_file = counting(file_exchange.write_new_file)
file_exchange.exchange_files(Path(sys.argv[1]), {"a": b"new a", "b": b"new b", "c": b"new c"}, drop=["d"])
"""


@pytest.mark.parametrize("old", [OLD, {"d": b"old d"}], ids=["replaced", "new"])
@pytest.mark.parametrize("step", range(8))
def test_a_death_in_between_is_undone(tmp_path: Path, step: int, old: dict[str, bytes]) -> None:
    """Steps 0 to 3 write, 4 to 6 move, 7 removes the dropped file: by then the new ones are in place."""
    lay(tmp_path, old)
    done = subprocess.run([sys.executable, "-c", DIE_AT, str(tmp_path), str(step)], check=False)
    assert done.returncode == -signal.SIGKILL
    clear_dead_exchanges(tmp_path)
    assert contents(tmp_path) == (old if step < 7 else NEW)


@pytest.mark.parametrize("name", ["../x", "/x", "", ".x", "a/b"])
def test_only_names_of_files_are_exchanged(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a file"):
        exchange_files(tmp_path, {name: b"x"})
    with pytest.raises(ValueError, match="is not the name of a file"):
        exchange_files(tmp_path, {}, drop=[name])
    assert contents(tmp_path) == {}
