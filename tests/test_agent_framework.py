"""Provider and tool under their names in `agent-framework-hyperlight`: what they take, give back and keep out."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import math
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    Content,
    FunctionInvocationContext,
    FunctionTool,
    Message,
    MiddlewareFailure,
    MiddlewareTermination,
    UserInputRequiredException,
    function_middleware,
    tool,
)

from scripted_model import ScriptedClient, Turn, call
from wcpod import ExecutionResult, FetchPolicy, Limits
from wcpod.agent_framework import AllowedDomain, FileMount, HyperlightCodeActProvider, HyperlightExecuteCodeTool
from wcpod.exceptions import FetchPolicyError

PAGES = Path(__file__).parent / "pages"


@tool(approval_mode="never_require")
def area(
    shape: Annotated[Literal["square", "circle"], "What to measure."], size: Annotated[float, "Side or radius."] = 1.0
) -> float:
    """The area of a shape."""
    return size**2 * (3.0 if shape == "circle" else 1.0)


@tool(approval_mode="never_require")
async def rows(table: Annotated[str, "Name of the table."]) -> list[dict[str, Any]]:
    """Rows of a table."""
    await asyncio.sleep(0.01)
    return [{"table": table, "n": n} for n in range(3)]


@tool(approval_mode="always_require")
def delete(name: str) -> str:
    """Delete something."""
    return f"deleted {name}"


Make = Callable[..., HyperlightExecuteCodeTool]


@pytest.fixture
def execute_code() -> Iterator[Make]:
    """Makes tools that are closed after the test."""
    with contextlib.ExitStack() as stack:

        def make(**options: Any) -> HyperlightExecuteCodeTool:
            return stack.enter_context(contextlib.closing(HyperlightExecuteCodeTool(**options)))

        yield make


@pytest.fixture
def provider() -> Iterator[Callable[..., HyperlightCodeActProvider]]:
    """Makes providers that are closed after the test."""
    with contextlib.ExitStack() as stack:

        def make(**options: Any) -> HyperlightCodeActProvider:
            return stack.enter_context(contextlib.closing(HyperlightCodeActProvider(**options)))

        yield make


def run(made: HyperlightExecuteCodeTool, code: str) -> list[Content]:
    return asyncio.run(made.invoke(arguments={"code": code}))


def texts(contents: Sequence[Content]) -> list[str]:
    return [str(content.text) for content in contents if content.type == "text"]


def kind_of(content: Content) -> str:
    assert isinstance(content.raw_representation, ExecutionResult)
    return content.raw_representation.kind


def ask(turns: Sequence[Turn], **options: Any) -> ScriptedClient:
    client = ScriptedClient(turns)
    asyncio.run(go(Agent(client, name="A", **options)))
    return client


async def go(agent: Agent[Any], session: AgentSession | None = None) -> None:
    await agent.run("go", session=session)


# ---- what it is set up with


def test_tools_are_added_replaced_and_removed() -> None:
    def plain(a: int) -> int:
        """A function."""
        return a

    made = HyperlightExecuteCodeTool(tools=[area, plain])
    assert [found.name for found in made.get_tools()] == ["area", "plain"]
    made.add_tools(rows)
    made.add_tools(FunctionTool(name="area", func=plain))
    assert [found.name for found in made.get_tools()] == ["plain", "rows", "area"]
    made.remove_tool("rows")
    with pytest.raises(KeyError, match="there is no tool 'rows'"):
        made.remove_tool("rows")
    made.clear_tools()
    assert made.get_tools() == []


def test_a_tool_that_the_sandbox_cannot_name_is_refused() -> None:
    with pytest.raises(ValueError, match="the tool name 'get-area' is not an identifier"):
        HyperlightExecuteCodeTool(tools=FunctionTool(name="get-area", func=len))
    with pytest.raises(ValueError, match="the tool name 'fetch_url' is taken"):
        HyperlightExecuteCodeTool(tools=FunctionTool(name="fetch_url", func=len))


def test_tools_of_the_models_service_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    hosted: Any = {"type": "web_search"}
    made = HyperlightExecuteCodeTool(tools=[hosted, HyperlightExecuteCodeTool(), area])
    assert [found.name for found in made.get_tools()] == ["area"]
    assert caplog.messages == ["a tool of the type dict cannot be called from the sandbox: left out"]


def test_any_tool_that_wants_approval_raises_the_mode() -> None:
    made = HyperlightExecuteCodeTool(tools=[area])
    assert made.approval_mode == "never_require"
    made.add_tools(delete)
    assert made.approval_mode == made.create_run_tool().approval_mode == "always_require"
    made.remove_tool("delete")
    assert made.approval_mode == "never_require"
    assert HyperlightExecuteCodeTool(approval_mode="always_require").approval_mode == "always_require"


@pytest.mark.parametrize(
    ("given", "inside"),
    [
        (("FILE", "data/a.csv"), "/input/data/a.csv"),
        (FileMount("FILE", "/input/a.csv"), "/input/a.csv"),
        (("FILE", "./a\\b.csv"), "/input/a/b.csv"),
        ([("FILE", "a.csv")], "/input/a.csv"),
    ],
)
def test_file_mounts(given: Any, inside: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("1")
    [host, path] = given[0] if isinstance(given, list) else given
    named = (host.replace("FILE", str(file)), path)
    made = HyperlightExecuteCodeTool(file_mounts=[named] if isinstance(given, list) else named)
    assert made.get_file_mounts() == [FileMount(file, inside)]
    made.remove_file_mount(inside)
    with pytest.raises(KeyError, match="there is no file mount at"):
        made.remove_file_mount(inside)


def test_a_text_is_the_path_on_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    made = HyperlightExecuteCodeTool(file_mounts="data")
    assert made.get_file_mounts() == [FileMount(tmp_path / "data", "/input/data")]
    made.clear_file_mounts()
    assert made.get_file_mounts() == []


@pytest.mark.parametrize("path", ["../a", "/input/../a", "a/../../b"])
def test_a_mount_stays_below_input(path: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="leads out of /input"):
        HyperlightExecuteCodeTool(file_mounts=(str(tmp_path), path))


@pytest.mark.parametrize("path", ["", " ", "/", "/input", "."])
def test_a_mount_has_a_place_of_its_own(path: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="names no file or folder below /input"):
        HyperlightExecuteCodeTool(file_mounts=(str(tmp_path), path))


def test_a_workspace_is_a_folder_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "a"
    with pytest.raises(FileNotFoundError):
        HyperlightExecuteCodeTool(workspace_root=file)
    file.write_text("")
    with pytest.raises(ValueError, match="workspace_root must be a folder"):
        HyperlightExecuteCodeTool(workspace_root=file)


@pytest.mark.parametrize(
    ("given", "domains"),
    [
        ("Example.org", [AllowedDomain("example.org")]),
        ("https://example.org/path", [AllowedDomain("example.org")]),
        (("example.org", "get"), [AllowedDomain("example.org", ("GET",))]),
        (("example.org", ["POST", "GET"]), [AllowedDomain("example.org", ("GET", "POST"))]),
        (AllowedDomain("example.org", ("GET",)), [AllowedDomain("example.org", ("GET",))]),
        (["b.example", "a.example"], [AllowedDomain("a.example"), AllowedDomain("b.example")]),
    ],
)
def test_allowed_domains(given: Any, domains: list[AllowedDomain]) -> None:
    made = HyperlightExecuteCodeTool(allowed_domains=given)
    assert made.get_allowed_domains() == domains
    made.remove_allowed_domain(f"https://{domains[0].target}/x")
    with pytest.raises(KeyError, match="there is no allowed domain"):
        made.remove_allowed_domain(domains[0].target)
    made.clear_allowed_domains()
    assert made.get_allowed_domains() == []


def test_what_a_sandbox_cannot_do_is_refused() -> None:
    with pytest.raises(ValueError, match=r"example\.org is allowed POST, and a sandbox can only GET"):
        HyperlightExecuteCodeTool(allowed_domains=("example.org", "POST"))
    with pytest.raises(FetchPolicyError):
        HyperlightExecuteCodeTool(allowed_domains="*.example.org")
    with pytest.raises(ValueError, match="wcpod runs its own guest: backend='js'"):
        HyperlightExecuteCodeTool(backend="js")
    with pytest.raises(TypeError, match="an execute_code tool has no option 'limit'"):
        HyperlightExecuteCodeTool(limit=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["max_output_files", "max_output_file_bytes", "max_output_total_bytes"])
def test_limits_of_the_output_are_positive(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be more than 0, not 0"):
        HyperlightExecuteCodeTool(**{name: 0})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"{name} must be a whole number, not bool"):
        HyperlightExecuteCodeTool(**{name: True})  # type: ignore[arg-type]


def test_the_description_says_what_there_is(tmp_path: Path) -> None:
    made = HyperlightExecuteCodeTool(
        tools=[area, rows],
        tool_description_format={"rows": "json"},
        workspace_root=tmp_path,
        file_mounts=(str(tmp_path), "more"),
        allowed_domains="example.org",
    )
    for line in [
        "- `area`: The area of a shape.",
        '  - `shape` (string, required): What to measure. One of ["square", "circle"].',
        "  - `size` (number, optional): Side or radius. Default 1.0.",
        "  Parameters, as JSON Schema:",
        "- `/input/more` can be read.",
        "- Allowed are `example.org`, with GET over https.",
    ]:
        assert line in made.description.splitlines()
    made.clear_tools()
    made.clear_allowed_domains()
    assert "`area`" not in made.description
    assert made.description.endswith("Network:\n- none")
    assert made.to_dict()["description"] == made.description
    with pytest.raises(ValueError, match="tool_description_format must be 'compact' or 'json', not 'xml'"):
        HyperlightExecuteCodeTool(tool_description_format="xml")  # type: ignore[arg-type]


def test_instructions_name_the_one_tool() -> None:
    made = HyperlightExecuteCodeTool(tools=area)
    assert "You have one primary tool: execute_code." in made.build_instructions(tools_visible_to_model=True)
    assert "not offered to you directly" in made.build_instructions(tools_visible_to_model=False)


def test_a_run_tool_is_a_copy(tmp_path: Path) -> None:
    made = HyperlightExecuteCodeTool(tools=area, workspace_root=tmp_path, file_mounts=(str(tmp_path), "m"))
    before = made.create_run_tool()
    state = before.build_serializable_state()
    made.add_tools(delete)
    made.add_allowed_domains("example.org")
    made.clear_file_mounts()
    assert before.build_serializable_state() == state
    assert state["tool_names"] == ["area"]
    assert state["file_mounts"] == [{"host_path": str(tmp_path), "mount_path": "/input/m"}]
    assert json.loads(json.dumps(made.build_serializable_state())) == made.build_serializable_state()


# ---- what it gives back


@pytest.mark.microvm
def test_the_code_calls_tools_and_prints(execute_code: Make) -> None:
    made = execute_code(tools=[area, rows])
    code = 'print(call_tool("area", shape="circle", size=2), [row["n"] for row in call_tool("rows", table="t")])'
    [printed] = run(made, code)
    assert (printed.type, printed.text) == ("text", "12.0 [0, 1, 2]\n")
    assert made.host_call_counts == {"area": 1, "rows": 1}


@pytest.mark.microvm
def test_every_execution_starts_clean(execute_code: Make) -> None:
    made = execute_code()
    run(made, "import builtins; builtins.kept = 1; open('/output/a', 'w').write('x')")
    assert texts(run(made, "import builtins, os; print(hasattr(builtins, 'kept'), os.listdir('/output'))")) == [
        "False []\n"
    ]


@pytest.mark.microvm
def test_a_failure_is_text_for_the_model_and_an_error_for_the_host(execute_code: Make) -> None:
    before, told, error = run(execute_code(), "print('before')\n1/0")
    assert before.text == "before\n"
    assert str(told.text).startswith("Execution error: Traceback")
    assert str(told.text).endswith("ZeroDivisionError: division by zero\n")
    assert (error.type, error.message) == ("error", "Execution error")
    assert error.error_details == str(told.text).removeprefix("Execution error: ")
    assert kind_of(error) == "error"


@pytest.mark.microvm
def test_code_that_does_not_end_is_stopped(execute_code: Make) -> None:
    told, error = run(execute_code(limits=Limits(seconds=0.3)), "while True: pass")
    assert str(told.text).startswith("Execution error: The code was stopped at its time limit.\n")
    assert kind_of(error) == "timeout"


@pytest.mark.microvm
def test_files_come_back_with_their_types(execute_code: Make) -> None:
    code = """\
import os
os.makedirs('/output/sub')
open('/output/a.json', 'w').write('{}')
open('/output/sub/b.png', 'wb').write(b'PNG')
open('/output/c.unknown', 'wb').write(b'?')
print('made')"""
    printed, *files = run(execute_code(), code)
    assert printed.text == "made\n"
    assert [(file.type, file.media_type, file.additional_properties["path"]) for file in files] == [
        ("data", "application/json", "/output/a.json"),
        ("data", "application/octet-stream", "/output/c.unknown"),
        ("data", "image/png", "/output/sub/b.png"),
    ]
    assert files[0].uri == "data:application/json;base64,e30="


@pytest.mark.microvm
def test_files_over_a_limit_are_named_and_left_out(execute_code: Make) -> None:
    made = execute_code(max_output_files=2, max_output_file_bytes=4, max_output_total_bytes=6)
    code = """\
for name, size in {'a': 4, 'b': 5, 'c': 3, 'd': 2, 'e': 1}.items():
    with open(f'/output/{name}', 'wb') as file: file.write(b'x' * size)"""
    contents = run(made, code)
    assert [file.additional_properties["path"] for file in contents if file.type == "data"] == [
        "/output/a",
        "/output/d",
    ]
    assert texts(contents) == [
        "3 files were not attached (at most 2 files, 4 bytes each, 6 bytes together): "
        "/output/b (5 bytes), /output/c (3 bytes)"
    ]


@pytest.mark.microvm
def test_workspace_and_mounts_are_read_for_each_execution(execute_code: Make, tmp_path: Path) -> None:
    work, more = tmp_path / "work", tmp_path / "more.txt"
    (work / "sub").mkdir(parents=True)
    (work / "sub" / "a.txt").write_text("a")
    more.write_text("1")
    made = execute_code(workspace_root=work, file_mounts=(more, "sub/more.txt"))
    code = "print(open('/input/sub/a.txt').read(), open('/input/sub/more.txt').read())"
    assert texts(run(made, code)) == ["a 1\n"]
    more.write_text("2")
    assert texts(run(made, code)) == ["a 2\n"]


def test_a_link_in_the_workspace_is_not_followed(execute_code: Make, tmp_path: Path) -> None:
    secret, work = tmp_path / "secret", tmp_path / "work"
    secret.write_text("secret")
    work.mkdir()
    (work / "link").symlink_to(secret)
    told, _ = run(execute_code(workspace_root=work), "print(open('/input/link').read())")
    assert "is a link, and what a link leads to is not given to a sandbox" in str(told.text)


def test_more_than_a_run_may_be_given_is_said(execute_code: Make, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * (2 << 20))
    (tmp_path / "b").write_bytes(b"x" * ((1 << 20) + 1))
    told, _ = run(execute_code(workspace_root=tmp_path), "print(1)")
    assert told.text == (
        f"Execution error: with '{tmp_path}/b' the inputs are larger than the 3145728 bytes that a run may be given"
    )


@pytest.mark.microvm
def test_allowed_domains_are_all_that_is_fetched(execute_code: Make, tmp_path: Path) -> None:
    host = FetchPolicy.bbc().hosts[0]
    made = execute_code(allowed_domains=host, archive=PAGES, audit=tmp_path / "audit.jsonl")
    code = f"""\
for url in ("https://{host}/none", "https://evil.example/"):
    print(call_tool("fetch_url", url=url)["STATUS"])"""
    assert texts(run(made, code)) == ["error\nblocked\n"]
    decisions = [json.loads(line)["decision"] for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert decisions == ["allow", "block"]


@pytest.mark.microvm
def test_a_cancelled_execution_stops_its_guest(execute_code: Make) -> None:
    made = execute_code(tools=area)

    async def cancelled() -> list[Content]:
        job = asyncio.ensure_future(
            made.invoke(arguments={"code": "call_tool('area', shape='square')\nwhile True: pass"})
        )
        while made.host_call_counts != {"area": 1}:
            await asyncio.sleep(0.01)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        return await made.invoke(arguments={"code": "print('next')"})

    assert texts(asyncio.run(cancelled())) == ["next\n"]


@pytest.mark.microvm
def test_a_tool_may_run_code_itself(execute_code: Make) -> None:
    async def inner(n: int) -> str:
        """Runs code in the same tool."""
        return texts(await made.invoke(arguments={"code": f"print({n} + 1)"}))[0]

    made = execute_code()
    made.add_tools(inner)
    assert texts(run(made, "print(call_tool('inner', n=1))")) == ["2\n\n"]


@pytest.mark.microvm
def test_what_a_tool_refuses_reaches_the_code(execute_code: Make) -> None:
    code = """\
for arguments in ({"shape": "circle", "size": "big"}, {"shape": "line"}):
    try: call_tool("area", **arguments)
    except TypeError as error: print(str(error).splitlines()[0])"""
    refused = "Invalid arguments for 'area': 1 validation error for area_input\n"
    assert texts(run(execute_code(tools=area), code)) == [refused * 2]


@pytest.mark.microvm
def test_results_of_tools_get_a_form_in_json(execute_code: Make) -> None:
    def mixed() -> Any:
        """Things that JSON has no form for."""
        return {
            "day": dt.date(2026, 6, 15),
            "set": {1},
            "bytes": b"x",
            "limits": Limits(seconds=1.5),
            "path": Path("a"),
        }

    def endless() -> float:
        """Infinity."""
        return math.inf

    code = """\
got = call_tool("mixed")
print(got["day"], got["set"], got["bytes"], got["limits"]["seconds"], got["path"])
try: call_tool("endless")
except TypeError as error: print("cannot cross" in str(error))"""
    assert texts(run(execute_code(tools=[mixed, endless]), code)) == ["2026-06-15 [1] eA== 1.5 a\nTrue\n"]


# ---- in an agent


@pytest.mark.microvm
def test_an_agent_has_the_one_tool_and_its_state(provider: Callable[..., HyperlightCodeActProvider]) -> None:
    made = provider(tools=[area])
    client = ScriptedClient([[call("execute_code", code="print(call_tool('area', shape='square', size=3))")], "done"])
    session = AgentSession()
    asyncio.run(go(Agent(client, name="A", context_providers=[made]), session))
    assert client.tools == [["execute_code"]] * 2
    assert client.results() == ["9.0\n"]
    assert json.loads(json.dumps(session.to_dict()))["state"]["hyperlight_codeact"] == {
        "hyperlight_codeact": made._tool.build_serializable_state()
    }


@pytest.mark.microvm
def test_executions_side_by_side_keep_their_calls_apart(provider: Callable[..., HyperlightCodeActProvider]) -> None:
    code = "print(len(call_tool('rows', table='t')), call_tool('area', shape='square', size={n}))"
    calls = [call("execute_code", str(n), code=code.format(n=n)) for n in range(1, 4)]
    made = provider(tools=[area, rows])
    client = ask([calls, "done"], context_providers=[made])
    assert client.results() == ["3 1.0\n", "3 4.0\n", "3 9.0\n"]
    assert made.host_call_counts == {"rows": 3, "area": 3}


@pytest.mark.microvm
def test_calls_of_the_code_pass_the_agents_middleware(provider: Callable[..., HyperlightCodeActProvider]) -> None:
    seen: list[tuple[str, str | None, Any]] = []

    @function_middleware
    async def watch(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        if context.function.name == "area":
            context.arguments = {**dict(context.arguments), "size": 10}
        await call_next()
        seen.append((context.function.name, context.metadata.get("called_by"), context.session is not None))
        if context.function.name == "area":
            context.result += 1

    client = ask(
        [[call("execute_code", code="print(call_tool('area', shape='square', size=3))")], "done"],
        context_providers=[provider(tools=[area])],
        middleware=[watch],
    )
    assert client.results() == ["101.0\n"]
    assert [name for name, _, _ in seen] == ["area", "execute_code"]
    assert [by for _, by, _ in seen] == ["execute_code", None]


@pytest.mark.microvm
@pytest.mark.parametrize("signal", [MiddlewareFailure("stop"), MiddlewareTermination("stop")])
def test_middleware_can_end_the_run_from_within(
    provider: Callable[..., HyperlightCodeActProvider], signal: Exception
) -> None:
    @function_middleware
    async def guard(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        if context.function.name == "area":
            raise signal
        await call_next()

    made = provider(tools=[area, rows])
    code = """\
try: call_tool('area', shape='square')
except BaseException: pass
while True: pass"""
    expected = pytest.raises(MiddlewareFailure, match="stop") if isinstance(signal, MiddlewareFailure) else None
    with expected or contextlib.nullcontext():
        client = ask([[call("execute_code", code=code)]], context_providers=[made], middleware=[guard])
        assert client.turns == []  # and the model was not asked again, or there would be no turn for it
    assert made.host_call_counts.get("rows") is None


@pytest.mark.microvm
def test_a_question_for_the_user_ends_the_run_with_it(provider: Callable[..., HyperlightCodeActProvider]) -> None:
    def book(day: str) -> str:
        """Book a day."""
        raise UserInputRequiredException([Content.from_oauth_consent_request(f"https://example.org/{day}")])

    client = ScriptedClient([[call("execute_code", code="call_tool('book', day='Monday')\nwhile True: pass")]])
    agent = Agent(client, name="A", context_providers=[provider(tools=book)])

    async def links() -> list[str | None]:
        return [request.consent_link for request in (await agent.run("go")).user_input_requests]

    assert asyncio.run(links()) == ["https://example.org/Monday"]


@pytest.mark.microvm
def test_a_tool_is_given_the_session_and_the_runs_arguments(provider: Callable[..., HyperlightCodeActProvider]) -> None:
    def whose(context: FunctionInvocationContext) -> str:
        """Whose run it is."""
        assert context.session is not None
        return f"{context.session.session_id} {context.kwargs['user']}"

    client = ScriptedClient([[call("execute_code", code="print(call_tool('whose'))")], "done"])
    agent = Agent(client, name="A", context_providers=[provider(tools=whose)])

    async def answer() -> None:
        await agent.run("go", session=AgentSession(session_id="S"), function_invocation_kwargs={"user": "U"})

    asyncio.run(answer())
    assert client.results() == ["S U\n"]


@pytest.mark.microvm
def test_few_sandboxes_are_kept(execute_code: Make) -> None:
    made = execute_code()
    for n in range(8):
        made.clear_allowed_domains()
        made.add_allowed_domains(f"host{n}.example.org")
        assert texts(run(made, f"print({n})")) == [f"{n}\n"]
    assert len(made._sandboxes._lent) == 4


FORKS = """\
import asyncio, os, warnings
from wcpod.agent_framework import HyperlightExecuteCodeTool

warnings.simplefilter("ignore", DeprecationWarning)
execute_code = HyperlightExecuteCodeTool()
run = lambda text: asyncio.run(execute_code.invoke(arguments={"code": f"print({text!r})"}))[0].text
print(run("parent"), end="", flush=True)
if (child := os.fork()) == 0:
    print(run("child"), end="", flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(run("parent again"), end="")
"""


@pytest.mark.microvm
def test_a_forked_child_has_sandboxes_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("parent\nchild\nparent again\n", 0), done.stderr


@pytest.mark.microvm
def test_approval_is_asked_before_the_code_runs(provider: Callable[..., HyperlightCodeActProvider]) -> None:
    made = provider(tools=[area, delete])
    client = ScriptedClient([[call("execute_code", code="print(call_tool('delete', name='a'))")], "done"])
    agent = Agent(client, name="A", context_providers=[made])

    async def answer() -> str:
        session = AgentSession()
        asked = await agent.run("go", session=session)
        [request] = asked.user_input_requests
        assert made.host_call_counts == {}
        return (await agent.run(Message("user", [request.to_function_approval_response(True)]), session=session)).text

    assert asyncio.run(answer()) == "done"
    assert client.results() == ["deleted a\n"]


@pytest.mark.microvm
def test_a_tool_that_wants_approval_later_is_refused(execute_code: Make) -> None:
    @tool(approval_mode="never_require")
    def send(text: str) -> str:
        """Send."""
        raise AssertionError(f"called with {text}")

    made = execute_code(tools=send)
    send.approval_mode = "always_require"
    told, _ = run(made, "call_tool('send', text='x')")
    assert "PermissionError: the tool 'send' wants approval, and this execution was not approved" in str(told.text)


@pytest.mark.microvm
def test_arguments_that_do_not_fit_are_explained(provider: Callable[..., HyperlightCodeActProvider]) -> None:
    client = ask([[call("execute_code", source="x")], "done"], context_providers=[provider()])
    assert client.results()[0].startswith('Error: execute_code was not called: the argument "code" is missing.')


def test_a_closed_provider_ends_the_run(provider: Callable[..., HyperlightCodeActProvider]) -> None:
    made = provider()
    made.close()
    with pytest.raises(MiddlewareFailure, match="execute_code: this provider was closed"):
        ask([[call("execute_code", code="print(1)")]], context_providers=[made])
