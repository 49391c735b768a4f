"""Simplified to traditional, as a listener in Taiwan expects it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wcpod.podcast.hanzi import han_count, to_traditional

CASES = json.loads((Path(__file__).parent / "cases" / "zh.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("simplified", "traditional"), [pytest.param(*pair, id=name) for name, *pair in CASES])
def test_shared_cases(simplified: str, traditional: str) -> None:
    assert to_traditional(simplified) == traditional


@pytest.mark.parametrize(
    ("simplified", "traditional"),
    [
        ("被发现", "被發現"),
        ("粉丝发来祝福", "粉絲發來祝福"),
        ("展示了解决问题的能力", "展示了解決問題的能力"),
        ("少数组织者", "少數組織者"),
        ("集体制造越位", "集體製造越位"),
        ("体制造成了问题", "體制造成了問題"),
        ("比赛制造了悬念", "比賽製造了懸念"),
        ("并发出邀请", "並發出邀請"),
        ("合并发布", "合併發布"),
        ("一出场就进球", "一出場就進球"),
        ("一出好戏", "一齣好戲"),
        ("面条和面对", "麵條和面對"),
    ],
)
def test_words_are_cut_in_the_right_place(simplified: str, traditional: str) -> None:
    assert to_traditional(simplified) == traditional


@pytest.mark.parametrize(
    ("simplified", "traditional"),
    [
        ("循环赛", "循環賽"),
        ("比赛项目", "比賽項目"),
        ("球迷支持", "球迷支持"),
        ("刷新纪录", "刷新紀錄"),
        ("转会窗口", "轉會窗口"),
        ("防守对象", "防守對象"),
        ("掌控全局", "掌控全局"),
        ("视频助理裁判", "影像助理裁判"),
        ("国王杯", "國王盃"),
        ("捧起大力神杯", "捧起大力神盃"),
        ("点球大战", "點球大戰"),
        ("帽子戏法", "帽子戲法"),
        ("伤停补时", "傷停補時"),
        ("后卫与后腰", "後衛與後腰"),
    ],
)
def test_football_terms(simplified: str, traditional: str) -> None:
    assert to_traditional(simplified) == traditional


@pytest.mark.parametrize(
    ("simplified", "traditional"),
    [
        ("范戴克", "范戴克"),
        ("范加尔", "范加爾"),
        ("于帕梅卡诺", "于帕梅卡諾"),
        ("佩里西奇", "佩里西奇"),
        ("里克尔梅", "里克爾梅"),
        ("路易斯·恩里克", "路易斯·恩里克"),
        ("罗马里奥", "羅馬里奧"),
        ("布雷默", "布雷默"),
        ("C罗在禁区里射门", "C羅在禁區裡射門"),
        ("这里克服了困难", "這裡克服了困難"),
        ("科特迪瓦与加纳", "象牙海岸與迦納"),
        ("沙特队与马里队", "沙烏地阿拉伯隊與馬利隊"),
    ],
)
def test_names(simplified: str, traditional: str) -> None:
    assert to_traditional(simplified) == traditional


def test_a_whole_paragraph() -> None:
    simplified = (
        "各位听众，欢迎回来。昨晚的揭幕战里，墨西哥队的后卫被发现越位在先，裁判看了视频之后取消了进球。\n\n"
        "下半场，范戴克头球攻门，皮球只差一点；门将发挥神勇，里面的观众都松了一口气。最后比分是1比0，第90+3分钟一锤定音。"
    )
    traditional = (
        "各位聽眾，歡迎回來。昨晚的揭幕戰裡，墨西哥隊的後衛被發現越位在先，裁判看了影片之後取消了進球。\n\n"
        "下半場，范戴克頭球攻門，皮球只差一點；門將發揮神勇，裡面的觀眾都鬆了一口氣。最後比分是1比0，第90+3分鐘一錘定音。"
    )
    assert to_traditional(simplified) == traditional


@pytest.mark.parametrize("text", ["", "Messi 2-1\n\n```\n", "繁體已經是繁體"])
def test_what_needs_no_conversion_stays(text: str) -> None:
    assert to_traditional(text) == text


def test_only_han_characters_count() -> None:
    assert han_count("二比一，A组 3-1！\n《赛后》") == 6
