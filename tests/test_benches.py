"""The benchmarks' own rules, and the tables that are made of what they find."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
BENCHES = ROOT / "benches"
FILES = sorted(BENCHES.glob("test_*.py"))


@pytest.fixture
def specification(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHES)
    import specification

    yield specification
    for name in ("specification", "figures"):
        sys.modules.pop(name)


def timed_by_benchmark(tree: ast.AST) -> list[ast.expr]:
    """What the functions of a file let pytest-benchmark call."""
    return [
        call.args[0]
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("benchmark", "benchmark.pedantic")
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_timed_is_what_is_named(path: Path) -> None:
    """No stand-in that does nothing or sleeps: whoever reads the results file would take its time for the title's."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    stand_ins = [ast.unparse(target) for target in timed_by_benchmark(tree)]
    assert [text for text in stand_ins if text == "lambda: None" or "sleep" in text] == []
    assert "extra_info['seconds']" not in ast.unparse(tree)


def test_a_stand_in_would_be_seen() -> None:
    tree = ast.parse("benchmark.pedantic(lambda: None, rounds=1)\nbenchmark(time.sleep)")
    assert [ast.unparse(target) for target in timed_by_benchmark(tree)] == ["lambda: None", "time.sleep"]


def test_the_table_has_what_was_timed_noted_and_counted(specification: Any) -> None:
    file = "benches/test_runs.py"
    results = {
        "machine_info": {"hypervisor": "kvm", "privilege_mode": "ring0", "processor": "P, 2 cores", "release": "6.1"},
        "datetime": "2026-12-01T10:00:00",
        "benchmarks": [
            {
                "name": "test_restore",
                "fullname": f"{file}::test_restore",
                "param": None,
                "stats": {"data": [0.003, 0.001, 0.002]},
                "extra_info": {"dirtied pages": 7},
            }
        ],
        "figures": [
            {
                "name": "test_memory_of_further_sandboxes",
                "fullname": "benches/test_growth.py::test_memory_of_further_sandboxes",
                "param": None,
                "seconds": [],
                "count": 20,
                "beside": {"KiB": 9},
            },
            {
                "name": "test_host_call",
                "fullname": f"{file}::test_host_call",
                "param": "x",
                "seconds": [0.0005] * 100,
                "count": 100,
                "beside": {},
            },
        ],
    }
    assert specification.suite(results)[2:] == [
        "| what | median | p99 | count | beside |",
        "|---|---|---|---|---|",
        "| resident memory of a further sandbox after a run, the mean of 20 | – | – | 20 | KiB: 9 |",
        "| restore: the clean state brought back, nothing run | 2.00 | – | 3 | dirtied pages: 7 |",
        "| one call of a host tool, out of a run of 200 (x) | 0.500 | 0.500 | 100 |  |",
    ]


def test_the_table_in_the_document_is_one_of_this_suite(specification: Any) -> None:
    text = (ROOT / "SPECIFICATION.md").read_text(encoding="utf-8")
    table = text.partition("<!-- measured: begin -->")[2].partition("<!-- measured: end -->")[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if line.startswith("| ")]
    shown = {re.sub(r" \([^()]*\)$", "", row) for row in rows[1:]}
    known = {re.sub(r" \([^()]*\)$", "", title) for title in specification.titles().values()}
    assert sorted(shown - known) == []


def test_a_bar_that_is_not_met_says_so(specification: Any) -> None:
    def figure(name: str, *seconds: float, param: str | None = None, beside: dict[str, int] | None = None) -> Any:
        name += f"[{param}]" if param else ""
        return specification.Figure(name, name, param, list(seconds), 1, beside or {})

    found = [
        figure("test_in_process_fresh", 0.001),
        figure("test_in_process_warm", 0.001),
        figure("test_restore_and_run", 0.002, beside={"dirtied pages": 81}),
        figure("test_warm_run", 0.005),
        figure("test_first_result_of_a_new_process", 0.03),
        figure("test_a_further_sandbox", 0.001),
        figure("test_memory_of_further_sandboxes", beside={"KiB": 4000}),
        figure("test_throughput", param="1", beside={"runs a second": 100}),
        figure("test_throughput", param="2", beside={"runs a second": 170}),
        figure("test_restore_by_memory", 0.001, param="64"),
        figure("test_restore_by_memory", 0.002, param="512"),
    ]
    table = [line.split(" | ")[1:] for line in specification.bars(found)[2:-1]]
    assert table == [
        ["at most 2.5", "2 |"],
        ["at most 5", "5 |"],
        ["at most 80", "**not met**: 81 |"],
        ["at most 20", "**not met**: 30 |"],
        ["at most 2", "1 |"],
        ["at most 3072", "**not met**: 4000 |"],
        ["at least 1.7", "1.7 |"],
        ["at most 1.3", "**not met**: 2 |"],
    ]
