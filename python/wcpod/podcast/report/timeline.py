"""Where each agent, run and fetch stands on the picture of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WIDTH = 960
_LEFT, _RIGHT, _TOP = 130, 12, 8
_LANE, _GAP, _AXIS = 54, 10, 26
_NARROWEST = 2.0
_TICKS = 6
_STEPS = "graph"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its place in the picture, what it stands for ("step", "run", "fetch"), how it ended, and its label."""

    x: float
    y: float
    width: float
    height: float
    what: str
    ended: str
    label: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The picture: height, names of the lanes with their y, bars, and ticks of the axis with their x."""

    height: int
    lanes: tuple[tuple[str, int], ...]
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[str, float], ...]
    axis: int

    @classmethod
    def of(cls, episode: Mapping[str, Any]) -> Timeline:
        """The picture of an episode's record."""
        spans = episode["seconds"]["timeline"]
        runs, fetches = episode["executions"], episode["fetches"]
        agents = list(dict.fromkeys([*episode["tool_call_counts"], *episode["tokens"]]))
        tops = {name: _TOP + index * (_LANE + _GAP) for index, name in enumerate([_STEPS, *agents])}
        ends = [item["started"] + item["seconds"] for item in (*spans, *runs, *fetches)]
        longest = max([*ends, episode["seconds"]["total"], 0.001])
        scale = (WIDTH - _LEFT - _RIGHT) / longest

        def bar(item: Mapping[str, Any], lane: str, part: tuple[int, int], what: str, ended: str, label: str) -> Bar:
            x = _LEFT + item["started"] * scale
            width = max(item["seconds"] * scale, _NARROWEST)
            top = tops.get(lane, tops[_STEPS])
            return Bar(round(x, 1), top + part[0], round(width, 1), part[1], what, ended, label)

        bars = [
            bar(span, span["step"], (0, 16), "step", "ok", f"{span['step']}: {_seconds(span['seconds'])}")
            for span in spans
        ]
        bars += [
            bar(
                run,
                run["agent"],
                (20, 14),
                "run",
                run["kind"],
                f"run {number}: {run['kind']}, {_seconds(run['seconds'])}",
            )
            for number, run in enumerate(runs, start=1)
        ]
        bars += [
            bar(
                fetch,
                fetch["agent"],
                (38, 14),
                "fetch",
                fetch["status"],
                f"fetch: {fetch['status']} {fetch['url'] or ''}, {_seconds(fetch['seconds'])}",
            )
            for fetch in fetches
        ]
        axis = _TOP + len(tops) * (_LANE + _GAP)
        return cls(
            height=axis + _AXIS,
            lanes=tuple((name, top + 13) for name, top in tops.items()),
            bars=tuple(bars),
            ticks=tuple((_seconds(tick), round(_LEFT + tick * scale, 1)) for tick in _ticks(longest)),
            axis=axis,
        )


def _ticks(longest: float) -> list[float]:
    """Round numbers from 0 to `longest`."""
    magnitude = 10.0 ** math.floor(math.log10(longest / _TICKS))
    step = next(magnitude * factor for factor in (1, 2, 5, 10) if longest / (magnitude * factor) <= _TICKS)
    return [index * step for index in range(math.floor(longest / step) + 1)]


def _seconds(number: float) -> str:
    return f"{number * 1000:.0f} ms" if 0 < number < 1 else f"{number:.3g} s"
