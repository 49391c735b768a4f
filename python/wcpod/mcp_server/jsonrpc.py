"""Lines of a client as JSON-RPC messages. Every line that wants an answer gets one, whatever is wrong with it."""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

MOST_LEVELS = 100
"""Deepest nesting of a message."""
LINE_BYTES = 32 * 1024 * 1024
"""Longest line, in bytes."""

Id: TypeAlias = int | str | None

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_ID = re.compile(r'\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")')
_SURROGATE = re.compile("[\ud800-\udfff]")


class Malformed(Exception):
    """A line that is no message, and the answer to it."""

    def __init__(self, code: int, reason: str, request: Id) -> None:
        super().__init__(reason)
        self.answer = JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=reason))


def read_message(line: bytes) -> JSONRPCMessage:
    """The message of a line. Half a surrogate pair, which JSON can spell and text cannot hold, becomes U+FFFD.

    Raises:
        Malformed: if it is none.
    """
    text = line.decode("utf-8", "replace")
    if len(line) > LINE_BYTES:
        raise Malformed(INVALID_REQUEST, f"the message is longer than {LINE_BYTES} bytes", _id_in(text[:65536]))
    try:
        message = _scrubbed(json.loads(text, parse_int=_integer))
    except RecursionError:
        raise Malformed(
            INVALID_REQUEST, f"the message is nested deeper than {MOST_LEVELS} levels", _id_in(text)
        ) from None
    except ValueError as error:
        raise Malformed(PARSE_ERROR, f"the message is not JSON: {error}", _id_in(text)) from None
    try:
        if isinstance(message, dict) and "method" in message and "id" in message and _id_of(message) is None:
            raise ValueError  # the library takes it for a notification, and its sender waits
        return jsonrpc_message_adapter.validate_python(message, by_name=False)
    except ValueError:
        raise Malformed(INVALID_REQUEST, _what_is_wrong(message), _id_of(message)) from None


def write_message(message: JSONRPCMessage) -> bytes:
    """The line of a message."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError as error:
        if not isinstance(message, JSONRPCResponse):
            return b""
        failed = ErrorData(code=INTERNAL_ERROR, message=f"the answer cannot be written: {type(error).__name__}")
        text = JSONRPCError(jsonrpc="2.0", id=message.id, error=failed).model_dump_json(by_alias=True)
    return text.encode("utf-8") + b"\n"


def _scrubbed(value: Any, levels: int = MOST_LEVELS) -> Any:
    if levels < 0:
        raise RecursionError
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_scrubbed(item, levels - 1) for item in value]
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): _scrubbed(item, levels - 1) for key, item in value.items()}
    return value


def _integer(digits: str) -> int | float:
    """Python refuses to convert thousands of digits; no number of a message needs them."""
    return int(digits) if len(digits) < 400 else float("inf")


def _what_is_wrong(message: Any) -> str:
    if isinstance(message, list):
        return "a message is one object; batches are not part of the protocol"
    if not isinstance(message, dict):
        return "a message is an object"
    if message.get("jsonrpc") != "2.0":
        return 'the member "jsonrpc" must be "2.0"'
    if "id" in message and _id_of(message) is None:
        return 'the member "id" must be a number without fraction or a text'
    if not isinstance(message.get("method"), str):
        return 'the member "method" must be a text'
    if not isinstance(message.get("params", {}), dict):
        return 'the member "params" must be an object'
    return "the message is neither a request nor a notification nor a response"


def _id_of(message: Any) -> Id:
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None


def _id_in(text: str) -> Id:
    """The id of a message that cannot be parsed: what stands after the key "id" of the outermost object."""
    level = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "{[":
            level += 1
        elif token[0] in "}]":
            level -= 1
        elif level == 1 and token[0] == '"id"' and (found := _ID.match(text, token.end())):
            try:
                return _scrubbed(json.loads(found[1]))  # type: ignore[no-any-return]
            except ValueError:
                return None
    return None


def request_id(message: JSONRPCMessage) -> Id:
    """The id of a request, which waits for an answer with the same one."""
    return message.id if isinstance(message, JSONRPCRequest) else None


def answered_id(message: JSONRPCMessage) -> Id:
    """The id of the request that a message answers."""
    return message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else None
