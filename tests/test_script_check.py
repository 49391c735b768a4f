"""The rules that a script keeps before it is saved."""

from __future__ import annotations

import dataclasses

import pytest

from wcpod.podcast.hanzi import to_traditional
from wcpod.podcast.script_check import ScriptRules, check_scripts
from wcpod.podcast.scripts import Scripts

RULES = ScriptRules(shortest=30, longest=60)
GOOD = (
    "各位听众，早上好，欢迎收听《世界杯五分钟》。\n\n"
    "昨天晚上，挪威队以二比一赢了球，场面很精彩。\n\n"
    "感谢您的收听，再见。"
)
OTHER = "version holds characters of the other one: "


def problems(simplified: str = GOOD, traditional: str | None = None) -> list[str]:
    return check_scripts(Scripts(simplified, to_traditional(simplified) if traditional is None else traditional), RULES)


def test_a_good_script() -> None:
    assert problems() == []


def test_the_default_bounds() -> None:
    assert ScriptRules() == ScriptRules(shortest=1250, longest=1400, retries=2)


@pytest.mark.parametrize(("count", "good"), [(29, False), (30, True), (60, True), (61, False)])
def test_length(count: int, good: bool) -> None:
    frame = "早上好，再见。"
    found = problems(frame[:3] + "，" + "好" * (count - 5) + frame[3:])
    assert found == ([] if good else [f"The script has {count} Han characters; it must have 30 to 60."])


@pytest.mark.parametrize("odd", ["!", ",", "*", "#", "`", "[", "😀", "…".encode().decode() + "\x07", "_", "\t", "～"])
def test_only_han_punctuation_and_no_markup(odd: str) -> None:
    found = problems(GOOD.replace("精彩", f"精彩{odd}"))
    assert len(found) == 2
    assert found[0].startswith("The simplified version holds characters that are not Han text or Han punctuation: ")
    assert found[1].startswith("The traditional version holds characters that are not Han text or Han punctuation: ")


@pytest.mark.parametrize("odd", ["2", "%", "K", "É", "yyds"])
def test_what_a_voice_cannot_read(odd: str) -> None:
    found = problems(GOOD.replace("精彩", f"精彩{odd}"))
    shown = " ".join(sorted(set(odd)))
    assert found[0] == (f"The simplified version holds characters that are not Han text or Han punctuation: {shown}")


def test_a_show_may_allow_more() -> None:
    script = GOOD.replace("挪威队", "K组的挪威队")
    scripts = Scripts(script, to_traditional(script))
    assert check_scripts(scripts, dataclasses.replace(RULES, allowed="ABK")) == []


def test_no_address() -> None:
    found = problems(GOOD.replace("精彩", "精彩bbc.com"))
    assert "The simplified version holds an internet address." in found


def test_opening_and_closing() -> None:
    middle = GOOD.split("\n\n")[1] + "这是一场很好看的比赛，大家都很高兴。"
    assert problems(middle) == [
        "The script does not open with a greeting.",
        "The script does not close with a goodbye.",
    ]


def test_simplified_characters_in_the_traditional_version() -> None:
    assert problems(GOOD, GOOD) == [f"The traditional {OTHER}众 听 场 杯 欢 见 谢 赢 钟 队"]


def test_traditional_characters_in_the_simplified_version() -> None:
    traditional = to_traditional(GOOD)
    assert problems(traditional, traditional)[-1].startswith(
        "The simplified version holds characters of the other one: "
    )


def test_another_number_of_paragraphs() -> None:
    assert problems(GOOD, to_traditional(GOOD).replace("\n\n", "")) == [
        "The simplified version has 3 paragraphs, the traditional one 1."
    ]


def test_other_content() -> None:
    other = to_traditional(GOOD).replace("挪威隊以二比一贏了球", "今天的天氣非常好")
    assert problems(GOOD, other) == [
        "Paragraph 2 differs in content between the two versions: 昨天晚上，今天的天氣非常…"
    ]


def test_another_word_here_and_there_is_the_same_content() -> None:
    assert problems(GOOD, to_traditional(GOOD).replace("晚上", "晚間")) == []
