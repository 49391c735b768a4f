"""Programs in the forms that `agent-framework-hyperlight` documents, with their import changed, and a real client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import pytest
from agent_framework import Agent, FunctionInvocationContext, function_middleware, tool

import model_server
from wcpod.agent_framework import HyperlightCodeActProvider, HyperlightExecuteCodeTool

pytest.importorskip("agent_framework_foundry", reason="the extra 'foundry' is not installed")
pytestmark = pytest.mark.microvm

CODE = """\
stock = call_tool("list_stock", warehouse="north")
low = [item["name"] for item in stock if item["count"] < 5]
print(low, call_tool("calculate", operation="multiply", a=6, b=7))"""
PRINTED = "['bolt'] 42.0\n"


@tool(approval_mode="never_require")
def calculate(
    operation: Annotated[Literal["add", "multiply"], "What to do: add or multiply."],
    a: Annotated[float, "First number."],
    b: Annotated[float, "Second number."],
) -> float:
    """Calculate with two numbers."""
    return a + b if operation == "add" else a * b


STOCK = {"north": [{"name": "bolt", "count": 2}, {"name": "nut", "count": 9}]}


@tool(approval_mode="never_require")
async def list_stock(warehouse: Annotated[str, "Name of the warehouse."]) -> list[dict[str, Any]]:
    """List what a warehouse holds."""
    await asyncio.sleep(0.01)
    return STOCK.get(warehouse, [])


@tool(approval_mode="never_require", name="list_stock")
def list_stock_at_once(warehouse: Annotated[str, "Name of the warehouse."]) -> list[dict[str, Any]]:
    """List what a warehouse holds."""
    return STOCK.get(warehouse, [])


@tool(approval_mode="never_require")
def send_mail(to: Annotated[str, "Address."], text: Annotated[str, "Text."]) -> str:
    """Send a mail."""
    return f"sent to {to}: {text}"


class Service:
    """A model's service that runs `CODE`, then calls what there is besides `execute_code`, then says what it got."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self._base_url = ""

    @contextlib.contextmanager
    def served(self) -> Iterator[Service]:
        with model_server.model_server(self._answer) as (self._base_url, self.requests):
            yield self

    def get_openai_client(self, **_options: Any) -> Any:
        """What `FoundryChatClient` asks of its project client."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(base_url=self._base_url, api_key="none")

    def client(self, **options: Any) -> Any:
        from agent_framework.foundry import FoundryChatClient

        return FoundryChatClient(project_client=self, model="fake", **options)  # type: ignore[arg-type]

    @staticmethod
    def _answer(request: dict[str, Any]) -> model_server.Reply:
        outputs = model_server.tool_outputs(request)
        if not outputs:
            return model_server.call("execute_code", code=CODE)
        if outputs[-1] == PRINTED and "send_mail" in model_server.tool_names(request):
            return model_server.call("send_mail", to="a@example.org", text=PRINTED.strip())
        return model_server.Reply(outputs[-1])


async def ask(agent: Agent[Any], text: str) -> str:
    return (await agent.run(text)).text


@pytest.fixture
def service() -> Iterator[Service]:
    with Service().served() as served:
        yield served


def test_a_provider_with_middleware_that_shows_calls(service: Service) -> None:
    shown: list[str] = []

    @function_middleware
    async def show(context: FunctionInvocationContext, call_next: Callable[[], Any]) -> None:
        await call_next()
        if context.function.name == "execute_code" and isinstance(context.result, list):
            shown.extend(str(output.text) for output in context.result if output.type == "text")

    codeact = HyperlightCodeActProvider(tools=[calculate, list_stock], approval_mode="never_require")
    agent = Agent(
        client=service.client(),
        name="StockAgent",
        instructions="You are a helpful assistant.",
        context_providers=[codeact],
        middleware=[show],
    )
    assert asyncio.run(ask(agent, "What is low, and what is 6 times 7?")) == PRINTED
    assert shown == [PRINTED]
    assert model_server.tool_names(service.requests[0]) == ["execute_code"]
    codeact.close()


def test_a_tool_of_its_own(service: Service) -> None:
    execute_code = HyperlightExecuteCodeTool(tools=[calculate, list_stock_at_once], approval_mode="never_require")
    agent = Agent(
        client=service.client(),
        name="StockAgent",
        instructions="You are a helpful assistant.",
        tools=execute_code,
    )
    assert asyncio.run(ask(agent, "What is low?")) == PRINTED
    [sent] = service.requests[0]["tools"]
    assert "- `list_stock`: List what a warehouse holds." in sent["description"]
    execute_code.close()


def test_a_tool_wired_by_hand_beside_another(service: Service) -> None:
    execute_code = HyperlightExecuteCodeTool(tools=[calculate, list_stock_at_once], approval_mode="never_require")
    told = execute_code.build_instructions(tools_visible_to_model=False)
    agent = Agent(
        client=service.client(),
        name="StockAgent",
        instructions=f"You are a helpful assistant.\n\n{told}",
        tools=[send_mail, execute_code],
    )
    assert asyncio.run(ask(agent, "Mail what is low.")) == f"sent to a@example.org: {PRINTED.strip()}"
    assert "You have one primary tool: execute_code." in str(service.requests[0])
    execute_code.close()


def test_a_hosted_agent(service: Service) -> None:
    """As behind a server of its own: no name, details of errors on, and nothing kept at the service."""
    codeact = HyperlightCodeActProvider(tools=[calculate, list_stock], approval_mode="never_require")
    agent = Agent(
        client=service.client(function_invocation_configuration={"include_detailed_errors": True}),
        instructions="You are a helpful assistant. Keep your answers brief.",
        context_providers=[codeact],
        default_options={"store": False},
    )
    assert asyncio.run(ask(agent, "What is low?")) == PRINTED
    assert service.requests[0]["store"] is False
    codeact.close()
