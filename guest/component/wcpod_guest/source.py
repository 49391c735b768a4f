"""Code as models send it, made into a syntax tree.

Models wrap code in Markdown fences, indent all of it, and send Windows line ends or a byte order
mark. What parses as it is, is taken as it is: a fence inside a string stays.
"""

import ast
import re
from collections.abc import Callable, Iterator

#: Name of the code in tracebacks, and its `__file__`. WASI says that `sys.argv[0]` is "main.py".
FILENAME = "/tmp/main.py"

_BLOCK = re.compile(r"^[ \t]*```[ \t]*(?:python3?|py|)[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_PARSE_FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

_compile: Callable[..., ast.Module] = compile


def parse(text: str) -> tuple[ast.Module, str]:
    """The syntax tree of ``text``, and the text that its line numbers belong to.

    Raises the SyntaxError (or what else the compiler raises) of the most literal reading.
    """
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    refusals = []
    for reading in _readings(text):
        try:
            return _parse(reading), reading
        except SyntaxError as error:
            refusals.append(error)
    raise refusals[0] from None


def _readings(text: str) -> Iterator[str]:
    fenced = text.lstrip().startswith("```")
    if fenced:
        body = text.strip().partition("\n")[2]
        yield body.rpartition("\n```")[0] + "\n" if body.endswith("```") else body
    else:
        yield text
    if "```" in text:
        blocks = "\n".join(_BLOCK.findall(text))
        if blocks:
            yield blocks


def _parse(text: str) -> ast.Module:
    try:
        return _compile(text, FILENAME, "exec", _PARSE_FLAGS, dont_inherit=True)
    except IndentationError:
        if not text.lstrip("\n")[:1].isspace():
            raise
        # As the body of an `if` it needs no change, which strings with lines of their own would not survive.
        try:
            tree = _compile("if True:\n" + text, FILENAME, "exec", _PARSE_FLAGS, dont_inherit=True)
        except SyntaxError:
            tree = None
        match tree:
            case ast.Module(body=[ast.If(body=body)]):
                ast.increment_lineno(tree, -1)
                tree.body = body
                return tree
        raise
