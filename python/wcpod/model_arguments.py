"""What is wrong with the arguments of a tool call, in words that a model can act on.

The framework says "Argument parsing failed." whatever it was, and lets some errors of the JSON parser end the run.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agent_framework import (
    ChatContext,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionTool,
    chat_middleware,
    function_middleware,
)

from wcpod.control_characters import one_line

MAX_TEXT_BYTES = 1 << 20
"""Longest text of one argument. Code and inputs of one run may be larger, a model's code is not."""

_RAW = "raw"
"""The framework's only key for arguments that are no JSON object."""

_UNREADABLE = "These arguments could not be read."
_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
_EXAMPLES = {"execute_code": '{"code": "print(1)"}', "load_skill": '{"skill_name": "the-name"}'}


@function_middleware
async def explain_arguments(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
    """Function middleware: a call whose arguments do not fit is answered with what is wrong with them."""
    fault = fault_of_arguments(context.function, context.arguments)
    if fault is None:
        await call_next()
        return
    name = context.function.name
    example = f", as in {_EXAMPLES[name]}" if name in _EXAMPLES else ""
    context.result = f"Error: {name} was not called: {fault}. Pass its arguments as one JSON object{example}."


@chat_middleware
async def keep_arguments_readable(context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
    """Chat middleware: no arguments that a model writes end the agent's run when the framework parses them."""
    if context.stream:
        context.stream_result_hooks.append(_replace_unreadable)
    await call_next()
    if isinstance(context.result, ChatResponse):
        _replace_unreadable(context.result)


def fault_of_arguments(tool: FunctionTool, arguments: Any) -> str | None:
    """What keeps these arguments from being passed to the tool; None if nothing does."""
    schema = tool.parameters()
    expected: Mapping[str, Any] = schema.get("properties", {})
    if not isinstance(arguments, Mapping):
        return None
    if set(arguments) == {_RAW} and _RAW not in expected:
        return _fault_of_text(arguments[_RAW])
    for name in schema.get("required", ()):
        if name not in arguments:
            return f'the argument "{name}" is missing'
    names = ", ".join(f'"{name}"' for name in expected)
    for name, value in arguments.items():
        if name not in expected:
            if schema.get("additionalProperties", True) is False:
                return f'there is no argument "{one_line(str(name), 50)}", there is only {names}'
        elif expected[name].get("type") == "string":
            if not isinstance(value, str):
                return f'the argument "{name}" must be a string, not {_KINDS.get(type(value), "a number")}'
            size = len(value.encode("utf-8", "surrogatepass"))
            if size > MAX_TEXT_BYTES:
                return f'the argument "{name}" is {size} bytes long, at most {MAX_TEXT_BYTES} are allowed'
    return None


def _fault_of_text(text: Any) -> str:
    """What is wrong with arguments that the framework could not make an object of."""
    if text == _UNREADABLE:
        return "its arguments are nested too deeply, or hold a number that is too long"
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except json.JSONDecodeError as error:
        return f"its arguments are not JSON ({error.msg}: line {error.lineno} column {error.colno}){_hint(text, error)}"
    except (RecursionError, ValueError):
        return "its arguments cannot be read"
    if isinstance(value, dict):
        return "its arguments are a JSON object inside a JSON string, encoded twice"
    return f"its arguments are {_KINDS.get(type(value), 'a number')}, not an object"


def _hint(text: str, error: json.JSONDecodeError) -> str:
    if text.lstrip().startswith("```"):
        return "; leave the Markdown fence out"
    if error.msg.startswith("Invalid control character"):
        return r"; a line end inside a string is written \n"
    return ""


def _replace_unreadable(response: ChatResponse[Any]) -> None:
    for message in response.messages:
        for content in message.contents:
            if content.type == "function_call" and not _readable(content):
                content.arguments = {_RAW: _UNREADABLE}


def _readable(content: Content) -> bool:
    try:
        content.parse_arguments()
    except (RecursionError, ValueError):
        return False
    return True
