"""CPython's own tests: found in an installed Python, packed, and run in a restored guest, one module a run.

The selection and its figures are `tests/cases/cpython_tests.json`. Run as a script (`make cpython-tests`), this
measures the whole selection anew, and writes the figures there and into LIMITATIONS.md.
"""

from __future__ import annotations

import datetime
import io
import json
import re
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wcpod import ExecutionResult, Limits, Sandbox

CASES = Path(__file__).parent / "cases" / "cpython_tests.json"
LIMITATIONS = Path(__file__).parent.parent / "LIMITATIONS.md"
BEGIN, END = "<!-- cpython tests: begin -->", "<!-- cpython tests: end -->"
LIMITS = Limits(seconds=120, memory_mib=512, output_bytes=1 << 20)
RUNNER = (Path(__file__).parent / "guest_unittest.py").read_text(encoding="utf-8")

_STARTED = re.compile(r"^\x1eat (\d+)$", re.MULTILINE)
_IMPORTED = re.compile(r"^\s*(?:from test import ([\w, ]+)|(?:from|import) test\.(\w+))", re.MULTILINE)
_DEFINED = re.compile(r"^\s+(?:async )?def test", re.MULTILINE)
#: So many tests of one module may end the guest; then all of the module's count as failed.
_MOST_ENDS = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one module: for each test that did not pass, "failed: " or "skipped: " and the reason."""

    passed: int
    not_passed: dict[str, str]

    @property
    def failed(self) -> int:
        return sum(why.startswith("failed") for why in self.not_passed.values())

    @property
    def figures(self) -> list[int]:
        """Passed, failed, skipped."""
        return [self.passed, self.failed, len(self.not_passed) - self.failed]


class NoTests(Exception):
    """The Python whose tests are wanted is not installed, or without its tests."""


def source(version: str) -> Path:
    """The folder of the tests of CPython `version`: of this Python, one on the path, or one installed beside it."""
    minor = version.rpartition(".")[0]
    beside = sorted(Path(sys.base_prefix).parent.glob(f"*/bin/python{minor}"))
    ask = "import platform, sysconfig; print(platform.python_version(), sysconfig.get_path('stdlib'))"
    on_path = shutil.which(f"python{minor}")
    for python in [sys.executable, *([on_path] if on_path else []), *map(str, beside)]:
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
        found, _, folder = done.stdout.strip().partition(" ")
        if found == version and Path(folder, "test", "test_list.py").is_file():
            return Path(folder, "test")
    raise NoTests(
        f"the tests of CPython {version} are not installed: install that version with its package `test` "
        f"(`pyenv install {version}` does so) as python{minor} on the path, or beside the Python that runs this"
    )


def files(folder: Path, module: str, data: list[str]) -> dict[str, Path]:
    """The module, its data, and the parts of the package `test` that these import; names within the package."""
    wanted, seen = ["__init__", "support", module.partition(".")[0]], set(data)
    while wanted:
        name = wanted.pop()
        if name in seen or not (path := place(folder, name)).exists():
            continue
        seen.add(name)
        for file in path.rglob("*.py") if path.is_dir() else [path]:
            for listed, one in _IMPORTED.findall(file.read_text(encoding="utf-8", errors="replace")):
                wanted += [one] if one else [part.split()[0] for part in listed.split(",") if part.strip()]
    paths = [place(folder, name) for name in seen]
    found = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
    return {str(file.relative_to(folder)): file for file in sorted(found) if "__pycache__" not in file.parts}


def place(folder: Path, name: str) -> Path:
    return folder / name if (folder / name).exists() else folder / f"{name}.py"


def packed(content: dict[str, Path]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in content.items():
            archive.write(file, f"test/{name}")
    return out.getvalue()


def run(sandbox: Sandbox, folder: Path, module: str, case: dict[str, Any]) -> Outcome:
    """Runs a module; again without it when a test ended the guest, so that one test costs no others."""
    needs = case.get("needs", {})
    module = needs.get("module", module)
    archive = packed(files(folder, module, needs.get("data", [])))
    order: dict[str, Any] = {"module": module, "ended": {}}
    order |= {name: needs.get(name, []) for name in ("allow", "missing")} | {"twins": needs.get("twins", {})}
    for _ in range(_MOST_ENDS):
        result = sandbox.run(RUNNER, inputs={"tests.zip": archive, "order.json": json.dumps(order).encode()})
        started = _STARTED.findall(result.stderr)
        if "outcomes.json" in result.files or not started or started[-1] in order["ended"]:
            break
        order["ended"][started[-1]] = f"{result.kind}: {result.detail}"
    return outcome_of(result, folder, module)


def outcome_of(result: ExecutionResult, folder: Path, module: str) -> Outcome:
    if "outcomes.json" not in result.files:
        end = (result.stderr.strip().splitlines() or [""])[-1] if result.kind == "error" else result.detail or ""
        return whole(folder, module, f"failed: {result.kind}: {end}")
    report = json.loads(result.files["outcomes.json"])
    if report["whole"]:
        return whole(folder, module, f"skipped: {report['whole']}")
    not_passed: dict[str, str] = {}
    for name, word, why in report["tests"]:
        if "._FailedTest." in name:
            missed = whole(folder, name.partition("._FailedTest.")[2].removeprefix("test."), f"failed: {why}")
            not_passed |= missed.not_passed
        elif word != "passed":
            number = sum(other.partition(" #")[0] == name for other in not_passed)
            not_passed[f"{name} #{number + 1}" if number else name] = f"{word}: {' '.join(why.split())[:300]}"
    return Outcome(sum(word == "passed" for _, word, _ in report["tests"]), not_passed)


def whole(folder: Path, module: str, why: str) -> Outcome:
    """A module that did not come to run: each test function in its sources counts."""
    path = place(folder, module.replace(".", "/"))
    if not path.exists():
        path = folder / f"{module.replace('.', '/')}.py"
    sources = [file.read_text(encoding="utf-8") for file in (path.rglob("*.py") if path.is_dir() else [path])]
    count = sum(len(_DEFINED.findall(text)) for text in sources)
    return Outcome(0, {f"test.{module} #{number + 1}": why for number in range(max(count, 1))})


def reason(why: str, reasons: list[dict[str, Any]]) -> dict[str, Any]:
    """The first of the reasons that a test's own words match; the last one matches all."""
    return next(row for row in reasons if re.search(row["match"], why))


def counted(row: dict[str, Any]) -> int:
    return int(row["failed"] + row["skipped"])


def block(cases: dict[str, Any]) -> str:
    """What LIMITATIONS.md says of the figures."""
    modules = cases["modules"].values()
    passed, failed, skipped = (sum(module["figures"][place] for module in modules) for place in range(3))
    whole_modules = [name for name, module in cases["modules"].items() if module["figures"][0] == 0]
    lines = [
        f"{passed / (passed + failed):.1%} pass: of {passed + failed + skipped:,} tests in {len(modules)} modules, "
        f"{passed:,} passed, {failed:,} failed, and {skipped:,} skipped themselves. The tests are those of CPython "
        f"{cases['version']}, the guest's Python is {cases['measured']['guest']}. Of these modules none passed: "
        f"{', '.join(f'`{name}`' for name in whole_modules)}.",
        "",
        "| Why a test did not pass | failed | skipped |",
        "|---|---|---|",
        *(f"| {row['why']} | {row['failed']:,} | {row['skipped']:,} |" for row in cases["reasons"] if counted(row)),
        "",
        f"Machine: {cases['measured']['machine']}. Date: {cases['measured']['date']}. Command: `make cpython-tests`.",
    ]
    return "\n".join([BEGIN, *lines, END])


def machine(sandbox: Sandbox) -> str:
    models = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    isolation = sandbox.isolation
    return f"{models[0] if models else 'unknown'}, `{isolation.hypervisor}`, interpreter in {isolation.privilege_mode}"


def main() -> None:
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    folder = source(cases["version"])
    for row in cases["reasons"]:
        row |= {"failed": 0, "skipped": 0}
    with Sandbox(limits=LIMITS) as sandbox:
        for name, case in cases["modules"].items():
            began = time.monotonic()
            outcome = run(sandbox, folder, name, case)
            case["figures"] = outcome.figures
            for test, why in outcome.not_passed.items():
                reason(f"{test} {why}", cases["reasons"])[why.partition(":")[0]] += 1
            print(f"{name}: {outcome.figures} in {time.monotonic() - began:.0f} s", flush=True)
            for test, why in outcome.not_passed.items():
                if why.startswith("failed"):
                    print(f"    {test}: {why}")
        guest = sandbox.run("import platform\nprint(platform.python_version())").stdout.strip()
        date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        cases["measured"] = {"guest": guest, "machine": machine(sandbox), "date": date}
    CASES.write_text(written(cases), encoding="utf-8")
    publish(cases)


def publish(cases: dict[str, Any]) -> None:
    before, _, rest = LIMITATIONS.read_text(encoding="utf-8").partition(BEGIN)
    LIMITATIONS.write_text(f"{before}{block(cases)}{rest.partition(END)[2]}", encoding="utf-8")


def written(cases: dict[str, Any]) -> str:
    """JSON with a line for each module and each reason."""
    parts = []
    for name, value in cases.items():
        if name in ("modules", "reasons"):
            begin, end = "{}" if name == "modules" else "[]"
            rows = [f"{json.dumps(key)}: {json.dumps(row)}" for key, row in value.items()] if begin == "{" else None
            lines = ",\n    ".join(rows or [json.dumps(row, ensure_ascii=False) for row in value])
            parts.append(f"  {json.dumps(name)}: {begin}\n    {lines}\n  {end}")
        else:
            parts.append(f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main()
