import ast

import pytest

from wcpod_guest import source


def test_code_stays_as_it_is() -> None:
    code = "s = '''\n```bash\nls\n```\n'''\nprint(s)\n"
    tree, text = source.parse(code)
    assert text == code
    assert ast.dump(tree) == ast.dump(ast.parse(code))


@pytest.mark.parametrize(
    "sent",
    [
        "```python\nprint(1)\n```",
        "\n```py\nprint(1)\n```\n",
        "```\nprint(1)\n```",
        "```python\nprint(1)\n",
        "Here it is:\n```python\nprint(1)\n```\nDone.",
        "\ufeffprint(1)",
        "print(1)\r\n",
        "  print(1)\n",
        "\n\tprint(1)\n",
    ],
)
def test_what_models_send_is_unwrapped(sent: str) -> None:
    assert ast.dump(source.parse(sent)[0]) == ast.dump(ast.parse("print(1)"))


def test_blocks_between_prose_run_one_after_the_other() -> None:
    tree, text = source.parse("First:\n```python\nx = 1\n```\nthen\n```\nprint(x)\n```\n")
    assert (len(tree.body), text) == (2, "x = 1\n\nprint(x)\n")


def test_indented_code_keeps_its_lines_and_its_strings() -> None:
    tree, _ = source.parse('    x = """a\nb"""\n    print(x)\n')
    assert [statement.lineno for statement in tree.body] == [1, 3]
    assert isinstance(tree.body[0], ast.Assign)
    assert ast.literal_eval(tree.body[0].value) == "a\nb"


def test_an_error_has_the_line_that_was_sent() -> None:
    with pytest.raises(SyntaxError) as caught:
        source.parse("x = 1\nif x\n    print(1)")
    assert (caught.value.lineno, caught.value.filename) == (2, source.FILENAME)


def test_await_is_allowed() -> None:
    assert source.parse("await f()")[0].body
