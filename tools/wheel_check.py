"""Installs the wheel into an empty environment of every CPython of this machine, and runs code in a micro-VM with it.

`python tools/wheel_check.py dist/wcpod-*.whl`. Looks on the path, and where pyenv puts its versions. At least one must
be there; each that is not is named.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

#: What the wheel says of what is in it.
PAPERS = (
    "licenses/LICENSE",
    "licenses/THIRD-PARTY-NOTICES.txt",
    "sboms/hyperlight_bridge.cyclonedx.json",
    "sboms/python-guest.cyclonedx.json",
    "guest/python-guest.json",
)
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


class WheelError(Exception):
    """The wheel does not work with a Python."""


def interpreters() -> dict[str, Path | None]:
    """The newest CPython of each version, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: dict[str, Path | None] = {}
    for version in VERSIONS:
        installed = sorted(pyenv.glob(f"{version}.*/bin/python"))
        on_path = shutil.which(f"python{version}")
        candidates = [*reversed(installed), *([Path(on_path)] if on_path else [])]
        found[version] = next((path for path in candidates if answers(path, version)), None)
    return found


def answers(python: Path, version: str) -> bool:
    """Whether it starts, is that version, and can make environments: a shim of pyenv may do none of these."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version


def run(*command: str | Path, given: str | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise WheelError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def check(python: Path, wheel: Path) -> str:
    """What the interpreter of a fresh environment with nothing but the wheel says of itself."""
    with tempfile.TemporaryDirectory(prefix="wcpod-wheel-") as folder:
        run(python, "-m", "venv", folder)
        programs = Path(folder, "bin")
        run(programs / "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
        run(programs / "pip", "check", "--disable-pip-version-check")
        held = run(programs / "python", "-c", "from importlib.metadata import files; print(*files('wcpod'), sep='\\n')")
        missing = [paper for paper in PAPERS if f"/{paper}\n" not in held]
        if missing:
            raise WheelError(f"{wheel.name} lacks {', '.join(missing)}")
        run(programs / "wcpod", "doctor")
        printed = run(programs / "wcpod", "exec", "-", given="import sys\nprint(6 * 7, sys.platform)")
        if printed != "42 wasi\n":
            raise WheelError(f"{python} printed {printed!r}")
        return run(programs / "python", "-c", "import platform; print(platform.python_version())").strip()


def main(wheel: Path) -> None:
    found = interpreters()
    for version, python in found.items():
        if python is None:
            print(f"wheel: {version}: not on this machine, not tried", flush=True)
        else:
            print(f"wheel: {version}: works ({check(python, wheel)} at {python})", flush=True)
    if not any(found.values()):
        raise WheelError("there is no CPython to try it with")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except WheelError as error:
        sys.exit(f"wheel: {error}")
