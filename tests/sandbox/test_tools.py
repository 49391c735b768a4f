"""Tools of the host, and the bounds between them and the guest."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime
import enum
import functools
import json
import time
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from wcpod import HostCall, Limits, Sandbox
from wcpod.sandbox.annotations import reader_of
from wcpod.sandbox.tools import CALLERS_LOOP, MAX_ARGUMENT_BYTES, ToolTable, parse_arguments

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


def add(a: int, b: int = 1) -> int:
    return a + b


async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


def fail(kind: str) -> None:
    raise {"value": ValueError, "key": KeyError, "own": OwnError}[kind]("the text")


class OwnError(Exception):
    pass


TOOLS: dict[str, Callable[..., Any]] = {
    "add": add,
    "wait": wait,
    "fail": fail,
    "who": lambda: WHO.get(),
    "deep": lambda: __import__("functools").reduce(lambda inner, _: [inner], range(100), 0),
    "large": lambda: "x" * (2 << 20),
    "odd": lambda: object(),
    "slow": lambda: time.sleep(30),
}


@pytest.fixture(scope="module")
def box(slowness: float) -> Any:
    with Sandbox(tools=TOOLS, limits=Limits(seconds=10 * slowness, host_calls=5)) as made:
        yield made


def raised(box: Sandbox, call: str, **arguments: Any) -> str:
    code = f"try:\n    print({call})\nexcept Exception as error:\n    print(type(error).__name__, error)"
    result = box.run(code, **arguments)
    assert result.ok, result.stderr
    return result.stdout


@pytest.mark.microvm
def test_sync_and_async_tools(box: Sandbox) -> None:
    assert raised(box, "call_tool('add', a=1, b=2), call_tool('add', a=1)") == "3 2\n"
    assert raised(box, "call_tool('wait', seconds=0.01)") == "waited\n"


@pytest.mark.microvm
def test_a_tool_sees_the_context_of_whoever_started_the_run(box: Sandbox) -> None:
    token = WHO.set("me")
    assert raised(box, "call_tool('who')") == "me\n"
    WHO.reset(token)


@pytest.mark.microvm
def test_a_mismatch_is_named(box: Sandbox) -> None:
    assert raised(box, "call_tool('add', a='1')") == "TypeError add(): a must be int, not str\n"
    assert raised(box, "call_tool('add', a=True)") == "TypeError add(): a must be int, not bool\n"
    assert "missing a required argument: 'a'" in raised(box, "call_tool('add')")
    assert "unexpected keyword argument 'c'" in raised(box, "call_tool('add', a=1, c=2)")


@pytest.mark.microvm
def test_exceptions_keep_their_type_name_and_text(box: Sandbox) -> None:
    assert raised(box, "call_tool('fail', kind='value')") == "ValueError the text\n"
    assert raised(box, "call_tool('fail', kind='key')").startswith("KeyError")
    assert "OwnError" in raised(box, "call_tool('fail', kind='own')")


@pytest.mark.microvm
def test_an_unknown_tool_names_those_that_there_are(box: Sandbox) -> None:
    assert "add" in raised(box, "call_tool('nothing')")


@pytest.mark.microvm
def test_results_are_bounded_and_plain(box: Sandbox) -> None:
    assert "nested deeper than 64 levels" in raised(box, "call_tool('deep')")
    assert "the reply is too long" in raised(box, "call_tool('large')")
    assert "cannot cross to the guest" in raised(box, "call_tool('odd')")


@pytest.mark.microvm
def test_calls_over_the_limit_are_refused(box: Sandbox) -> None:
    result = box.run("for n in range(7):\n    try: print(call_tool('add', a=n))\n    except Exception as e: print(e)")
    assert result.stdout.count("used up its 5 host calls") == 2
    assert [(call.status, call.count) for call in result.host_calls] == [("ok", 1)] * 5 + [("error", 2)]


@pytest.mark.microvm
def test_a_slow_tool_does_not_hold_up_the_limit(box: Sandbox, slowness: float) -> None:
    result = box.run("print('before')\ncall_tool('slow')", limits=Limits(seconds=0.4 * slowness))
    assert (result.kind, result.stdout) == ("timeout", "before\n")
    assert result.usage.seconds < 0.9 * slowness
    assert [call.status for call in result.host_calls] == ["timeout"]


@pytest.mark.microvm
def test_an_exception_of_on_call_comes_back_after_the_run(box: Sandbox) -> None:
    def refuse(call: HostCall) -> None:
        raise OwnError(call.name)

    with pytest.raises(OwnError, match="add"):
        box.run("call_tool('add', a=1)", on_call=refuse)
    assert box.run("print('ok')").stdout == "ok\n"


@pytest.mark.microvm
def test_a_list_of_functions_is_called_by_their_names(slowness: float) -> None:
    with Sandbox(tools=[add, wait], limits=Limits(seconds=10 * slowness)) as made:
        assert raised(made, "call_tool('add', a=1, b=2), call_tool('wait', seconds=0.01)") == "3 waited\n"


@pytest.mark.microvm
def test_what_the_guests_python_does_not_check_the_host_does(box: Sandbox) -> None:
    """Code can call the import of the component itself, past every check of the guest's own Python."""
    raw = "call_tool.__closure__[0].cell_contents._call_tool"
    for arguments, message in RAW.items():
        code = f"try:\n    {raw}('add', {arguments})\nexcept Exception as error:\n    print(error.value)"
        assert message in box.run(code).stdout, arguments


RAW = {
    "'{\"a\": NaN}'": "arguments hold NaN, which JSON does not have",
    "'{\"a\": -Infinity}'": "arguments hold -Infinity, which JSON does not have",
    "'{\"a\": 1e999}'": "arguments hold a number that is too large: 1e999",
    '\'{"a": 1, "a": 2}\'': "arguments name 'a' twice in one object",
    '\'{"a": {"b": 1, "b": 1}}\'': "arguments name 'b' twice in one object",
    "'{\"a\": ' + '[' * 64 + ']' * 64 + '}'": "arguments are nested deeper than 64 levels",
    "'{\"a\": ' + '[' * 900 + ']' * 900 + '}'": "arguments are nested deeper than 64 levels",
    "'{\"a\": ' + '{\"a\":' * 99999 + '1' + '}' * 99999 + '}'": "arguments are nested deeper than 64 levels",
    "'{\"a\": \"' + 'x' * 1100000 + '\"}'": "the arguments are 1100009 bytes, at most 1048576 fit",
    "'{\"a\": ' + '1' * 5000 + '}'": "Exceeds the limit (4300",
    'r\'{"a": "\\ud800"}\'': "arguments hold half of a surrogate pair, which is not text",
    "'[1]'": "arguments must be given by name",
    "'null'": "arguments must be given by name",
    "''": "arguments are not JSON: Expecting value: line 1 column 1 (char 0)",
    "'{\"a\": 1} x'": "arguments are not JSON: Extra data",
    '\'{"a": "1"}\'': "add(): a must be int, not str",
}


def test_the_bound_on_arguments_is_exact() -> None:
    text = json.dumps({"a": "x" * (MAX_ARGUMENT_BYTES - 9)})
    assert len(parse_arguments(text)["a"]) == MAX_ARGUMENT_BYTES - 9
    with pytest.raises(ValueError, match=r"^arguments are 1048577 bytes of JSON, at most 1048576 are allowed$"):
        parse_arguments(text + " ")


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


class Options(typing.TypedDict, total=False):
    deep: bool
    names: list[str]


class Strict(typing.TypedDict):
    name: str
    options: typing.NotRequired[Options]


@dataclasses.dataclass
class Node:
    name: str
    weight: float = 1.0
    children: list[Node] = dataclasses.field(default_factory=list)


Name = typing.NewType("Name", str)
T = typing.TypeVar("T")

DATE = datetime.date(2026, 6, 11)


@pytest.mark.parametrize(
    ("hint", "value", "read"),
    [
        (int, 1, 1),
        (int, True, "a must be int, not bool"),
        (int, 1.0, "a must be int, not float"),
        (float, 1, 1),
        (float, False, "a must be float, not bool"),
        (float, 10**400, "a must be float, and is too large for one"),
        (bool, 0, "a must be bool, not int"),
        (str, None, "a must be str, not NoneType"),
        (None, None, None),
        (Any, [{}], [{}]),
        (object, [{}], [{}]),
        (T, [{}], [{}]),
        (Name, 1, "a must be str, not int"),
        (typing.Annotated[int, "a number"], "1", "a must be int, not str"),
        (str | None, None, None),
        (str | None, 1, "a must be str, not int"),
        (int | str, [], "a must be int | str, not list"),
        (list[int] | None, [1, "2"], "a[1] must be int, not str"),
        (list, [1, "a"], [1, "a"]),
        (list[int], [1], [1]),
        (list[int], (1,), "a must be list[int], not tuple"),
        (list[list[int]], [[1], ["2"]], "a[1][0] must be int, not str"),
        (Sequence[int], {"0": 1}, "a must be collections.abc.Sequence[int], not dict"),
        (Sequence[str], "abc", "a must be collections.abc.Sequence[str], not str"),
        (typing.Sequence[int], ["1"], "a[0] must be int, not str"),
        (typing.Iterable[int], [1], [1]),
        (dict, {"a": 1}, {"a": 1}),
        (dict[str, int], {"a": "b"}, "a['a'] must be int, not str"),
        (Mapping[str, int], [1], "a must be collections.abc.Mapping[str, int], not list"),
        (Mapping[str, list[int]], {"x": [None]}, "a['x'][0] must be int, not NoneType"),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, str], [1], "a must be tuple[int, str], not 1 values"),
        (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
        (tuple[int, ...], [1, "2"], "a[1] must be int, not str"),
        (tuple, [1, "2"], (1, "2")),
        (set[int], [1, 2], {1, 2}),
        (set[int], [1, 1], "a must be set[int], and holds the same value twice"),
        (set, [[]], "a must be set: unhashable type: 'list'"),
        (frozenset[str], ["a"], frozenset("a")),
        (typing.Literal["a", 1], "a", "a"),
        (typing.Literal["a", 1], True, "a must be one of 'a', 1, not True"),
        (Colour, "red", Colour.RED),
        (Colour, 1, Colour.ONE),
        (Colour, "blue", "a must be one of 'red', 1, not 'blue'"),
        (Colour, True, "a must be one of 'red', 1, not True"),
        (datetime.date, "2026-06-11", DATE),
        (datetime.date, "tomorrow", "a must be a date as ISO 8601 writes it, not 'tomorrow'"),
        (datetime.date, 20260611, "a must be a date as ISO 8601 writes it, not 20260611"),
        (datetime.datetime, "2026-06-11T10:00:00Z", datetime.datetime(2026, 6, 11, 10, tzinfo=datetime.timezone.utc)),
        (Strict, {"name": "x"}, {"name": "x"}),
        (Strict, {}, "a must be Strict, and lacks 'name'"),
        (Strict, {"name": "x", "more": 1}, "a must be Strict, which has no 'more'"),
        (Strict, {"name": "x", "options": {"deep": 1}}, "a.options.deep must be bool, not int"),
        (Strict, 5, "a must be Strict, not int"),
        (Node, {"name": "x", "children": [{"name": "y"}]}, Node("x", children=[Node("y")])),
        (Node, {"name": "x", "children": [{"name": 1}]}, "a.children[0].name must be str, not int"),
        (Node, {"weight": 1}, "a must be Node, and lacks 'name'"),
    ],
)
def test_annotations(hint: Any, value: Any, read: Any) -> None:
    reader = reader_of(hint)
    if isinstance(read, str) and read.startswith("a"):
        try:
            assert reader(value, "a") == read
        except TypeError as error:
            assert str(error) == read
    else:
        result = reader(value, "a")
        assert (result, type(result)) == (read, type(read))


def call(tool: Any, **arguments: Any) -> Any:
    table = ToolTable({"tool": tool})
    dispatch = table.dispatcher()
    assert dispatch is not None
    return json.loads(dispatch("tool", json.dumps(arguments), 5.0))


def test_each_further_argument_is_checked() -> None:
    def tool(a: int, **more: int) -> list[int]:
        return [a, *more.values()]

    assert call(tool, a=1, b=2) == [1, 2]
    with pytest.raises(TypeError, match=r"^tool\(\): b must be int, not str$"):
        call(tool, a=1, b="x")


def test_types_are_inferred_from_defaults() -> None:
    def tool(n=1, on=False, name="x", x=1.5, of=None, items=()):  # type: ignore[no-untyped-def]
        return [n, on, name, x, of, list(items)]

    assert call(tool, n=2, of=[1], items=[1]) == [2, False, "x", 1.5, [1], [1]]
    for argument, value, right in (("n", "2", "int"), ("on", 1, "bool"), ("name", 1, "str"), ("x", "1", "float")):
        with pytest.raises(TypeError, match=f"{argument} must be {right}, not "):
            call(tool, **{argument: value})


def test_none_is_right_where_it_is_the_default() -> None:
    def tool(day: datetime.date = None) -> str:  # type: ignore[assignment]  # noqa: RUF013
        return repr(day)

    assert call(tool, day=None) == "None"
    assert call(tool, day="2026-06-11") == repr(DATE)


def test_methods_partials_classes_and_objects_are_tools() -> None:
    class Counter:
        def __init__(self, start: int = 0) -> None:
            self.count = start

        def add(self, n: int) -> int:
            self.count += n
            return self.count

        def __call__(self, n: int) -> int:
            return n

    assert call(Counter(1).add, n=1) == 2
    assert call(Counter(), n=1) == 1
    assert call(functools.partial(add, 1), b=2) == 3
    for tool in (Counter(1).add, Counter(), functools.partial(add, 1)):
        name = "b" if isinstance(tool, functools.partial) else "n"
        with pytest.raises(TypeError, match=f"{name} must be int, not str"):
            call(tool, **{name: "1"})


def with_annotation(hint: Any) -> Any:
    def tool(a):  # type: ignore[no-untyped-def]
        return a

    tool.__annotations__["a"] = hint
    return tool


@pytest.mark.parametrize(
    ("hint", "reason"),
    [
        ("Context", "its annotations cannot be resolved (name 'Context' is not defined)"),
        (list["Context"], "its annotations cannot be resolved (name 'Context' is not defined)"),  # type: ignore[name-defined]  # noqa: F821
        (bytes, "its argument 'a' is annotated bytes, which JSON has no form for"),
        (list[bytes], "its argument 'a' is annotated bytes, which JSON has no form for"),
        (complex, "its argument 'a' is annotated complex, which JSON has no form for"),
        (Sandbox, "its argument 'a' is annotated Sandbox, which JSON has no form for"),
        (
            Callable[[], int],
            "its argument 'a' is annotated collections.abc.Callable[[], int], which JSON has no form for",
        ),
        (dict[int, str], "its argument 'a' is annotated dict[int, str] (the keys of a JSON object are str), which "),
    ],
)
def test_a_tool_that_could_not_be_checked_is_refused(hint: Any, reason: str) -> None:
    with pytest.raises(TypeError) as error:
        ToolTable({"tool": with_annotation(hint)})
    assert str(error.value).startswith(f"the tool 'tool' cannot be offered: {reason}")


def test_arguments_that_have_no_name_are_refused() -> None:
    def tool(a: int, /) -> int:
        return a

    with pytest.raises(TypeError, match="cannot be offered: its argument 'a' cannot be given by name"):
        ToolTable([tool])
    with pytest.raises(TypeError, match="'max' cannot be offered: Python does not know its arguments"):
        ToolTable([max])


def test_an_async_tool_runs_in_the_loop_of_whoever_waits() -> None:
    async def which() -> int:
        return id(asyncio.get_running_loop())

    async def waits() -> int:
        CALLERS_LOOP.set(asyncio.get_running_loop())
        dispatch = ToolTable([which]).dispatcher()
        assert dispatch is not None
        return int(await asyncio.to_thread(dispatch, "which", "{}", 5.0)) - id(asyncio.get_running_loop())

    assert asyncio.run(waits()) == 0


def test_an_async_tool_in_anothers_loop_has_a_time_limit() -> None:
    async def waits() -> None:
        CALLERS_LOOP.set(asyncio.get_running_loop())
        dispatch = ToolTable([wait]).dispatcher()
        assert dispatch is not None
        await asyncio.to_thread(dispatch, "wait", '{"seconds": 60}', 0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(waits())


@pytest.mark.parametrize(
    ("tools", "error", "message"),
    [
        ({"fetch_url": add}, ValueError, "the tool name 'fetch_url' is taken: the sandbox has it built in"),
        ({"a b": add}, ValueError, "the tool name 'a b' is not an identifier"),
        ({"class": add}, ValueError, "the tool name 'class' is not an identifier"),
        ({1: add}, TypeError, "the name of a tool must be a str, not int"),
        ({"a": 3}, TypeError, "the tool 'a' is not callable"),
        ([lambda: 1], ValueError, "the tool name '<lambda>' is not an identifier"),
        ([add, add], ValueError, "there are two tools named 'add'"),
        ([3], TypeError, "the tool 3 has no name of its own: use tools={'name': tool}"),
        (add, TypeError, "tools must be a list of functions, or a dict of them by name, not function"),
        ("add", TypeError, "tools must be a list of functions, or a dict of them by name, not str"),
    ],
)
def test_names_are_checked(tools: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        ToolTable(tools)
    assert str(raised.value) == message


@pytest.mark.microvm
def test_half_a_surrogate_pair_in_a_result_or_an_error_does_not_hold_up_the_run(slowness: float) -> None:
    def half() -> str:
        return "\ud83d"

    def fails() -> None:
        raise ValueError("\ud83d")

    code = """
        for name in "half", "fails":
            try:
                call_tool(name)
            except Exception as error:
                print(type(error).__name__, error)
        """
    with Sandbox(tools=[half, fails], limits=Limits(seconds=20 * slowness)) as box:
        printed = box.run(code).stdout
    assert printed == ("TypeError the tool 'half' returned half of a surrogate pair, which is not text\nValueError ?\n")
