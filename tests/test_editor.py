"""The editor: what it finds in the pages and the facts, what it sends back, and that nothing else is saved."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from canned_runtime import CannedRuntime, host_call, reading
from model_server import Reply, model_server
from scripted_model import ScriptedClient
from test_model_clients import foundry, openai
from test_unruly_models import blocks, obedient
from wcpod.podcast.day_folder import DayFolder
from wcpod.podcast.editor import Editor, NotEnoughSources
from wcpod.podcast.evidence import ReadPage
from wcpod.podcast.hanzi import to_traditional
from wcpod.podcast.models import Model
from wcpod.podcast.progress import SearchReturned
from wcpod.podcast.run import Episode, run_episode
from wcpod.podcast.script_check import ScriptRejected, ScriptRules
from wcpod.podcast.scripts import Scripts
from wcpod.podcast.shelf import pages_read
from wcpod.podcast.show import default_show

DAY = dt.date(2026, 6, 15)
BRAZIL = """Brazil 3-1 Morocco: two late goals in Philadelphia
Brazil beat Morocco in front of 67,018 people on 14 June 2026. Half-time score: 1-1.
Goals: 17' Brazil header; 44' Morocco penalty; 86 mins Brazil. Brazil had 55% of the ball.
Both teams play again on Friday at 20:00 local time in Los Angeles."""
NORWAY = """Senegal 0-1 Norway: one goal in New Jersey
Norway took three points in front of 74,520 people. The goal came in the 52nd minute."""
JAPAN = """Netherlands 1-1 Japan: a free-kick earns a point
Japan levelled after 75 minutes against the Netherlands in Dallas, in front of 79,904 people."""
INDEX = """World Cup
Brazil 3-1 Morocco: two late goals
Senegal 0-1 Norway: one goal
Netherlands 1-1 Japan: a free-kick
Portugal 2-1 Croatia: late strike"""


def page(text: str, number: int = 1) -> ReadPage:
    return ReadPage(f"https://www.bbc.com/{number}", text.splitlines()[0], "0" * 64, text)


def problems(sentence: str, *texts: str) -> list[str]:
    pages = [page(text, number) for number, text in enumerate(texts or (BRAZIL, NORWAY, JAPAN))]
    return Editor(default_show(), DAY, pages).problems(Scripts(sentence, to_traditional(sentence)))


@pytest.mark.parametrize(
    "sentence",
    [
        "巴西队以三比一战胜摩洛哥队。",
        "摩洛哥队一比三不敌巴西队。",
        "第八十六分钟，巴西队再进一球。",
        "挪威队在第五十二分钟进球。",
        "六月十四日，巴西队赢了球。",
        "现场有六万七千多名观众，巴西队控球百分之五十五。",
        "现场有六万七千零一十八名观众。",
        "挪威队拿到三分。",
        "日本队一比一追平荷兰队。",
        "今天是二零二六年六月十五日。",
        "决赛定在七月十九日，地点是纽约新泽西体育场。",
        "墨西哥上一次承办世界杯，是在一九八六年。",
        "当地时间晚上八点开球，北京时间第二天上午十一点。",
        "各位听众，早上好，这里是《世界杯五分钟》。",
    ],
)
def test_what_pages_and_facts_give(sentence: str) -> None:
    assert problems(sentence) == []


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        (
            "巴西队以四比一战胜摩洛哥队。",
            "No page that names Brazil and Morocco, and no fact of the show, gives the score 四比一 (4-1)",
        ),
        (
            "第八十五分钟，巴西队再进一球。",
            "No page that names Brazil, and no fact of the show, gives the minute 第八十五分钟 (85)",
        ),
        ("七月一日开赛。", "No page, and no fact of the show, gives the date 七月一日 (7-1)"),
        ("一九八七年的事。", "No page, and no fact of the show, gives the year 一九八七年 (1987)"),
        ("现场有六万六千多名观众。", "No page, and no fact of the show, gives the number 六万六千 (66000)"),
        ("控球百分之五十六。", "No page, and no fact of the show, gives the number 百分之五十六 (56%)"),
        ("北京时间下午三点开球。", "No page, and no fact of the show, gives the time 下午三点 (15:00)"),
        ("意大利队也来了。", "No page that was read names 意大利 (Italy)"),
        ("火星队也来了。", "火星队 is not among the names of the show, so no page can be found for it"),
        ("摩洛哥队以三比一战胜巴西队。", "The score 三比一 is the wrong way round"),
        (
            "巴西队以一比一战平日本队。",
            "No page that names Brazil and Japan, and no fact of the show, gives the score 一比一 (1-1)",
        ),
        ("韩国队输了这场关键的比赛，教练员觉得很遗憾。", "No page that was read names 韩国 (South Korea)"),
    ],
)  # fmt: skip
def test_what_they_do_not_give(sentence: str, problem: str) -> None:
    assert problems(sentence)[0] == f"{problem} (in: {sentence})"


def test_a_page_of_results_gives_each_score_to_its_own_teams() -> None:
    assert problems("葡萄牙队以二比一战胜克罗地亚队。", INDEX) == []
    assert problems("巴西队以二比一战胜克罗地亚队。", INDEX) != []
    assert problems("葡萄牙队以三比一战胜克罗地亚队。", INDEX) != []


def test_a_number_of_the_traditional_version_alone() -> None:
    scripts = Scripts("巴西队以三比一战胜摩洛哥队。", "巴西隊以四比一戰勝摩洛哥隊。")
    found = Editor(default_show(), DAY, [page(BRAZIL)]).problems(scripts)
    assert found[0] == "The numbers of the two versions are not the same, one after the other."
    assert found[1].startswith("In the traditional version: No page that names Brazil and Morocco")


def test_a_sentence_without_a_team_speaks_of_the_one_before() -> None:
    assert problems("巴西队赢了摩洛哥队。半场比分是一比一。") == []
    assert problems("挪威队赢了塞内加尔队。半场比分是一比一。") != []


def test_where_each_sentence_comes_from() -> None:
    editor = Editor(default_show(), DAY, [page(BRAZIL, 1), page(NORWAY, 2)])
    script = "今天是六月十五日。\n巴西队以三比一取胜。挪威队也赢了。决赛定在七月十九日。"
    record = editor.record(script, required=2, samples=False)
    assert [(s["paragraph"], s["text"], s["claims"], s["pages"]) for s in record["sentences"]] == [
        (2, "巴西队以三比一取胜。", ["三比一"], [1]),
        (2, "决赛定在七月十九日。", ["七月十九日"], []),
    ]
    assert record["sentences"][1]["facts"] == ["决赛定在七月十九日，地点是纽约新泽西体育场。"]
    assert [found["url"] for found in record["pages"]] == ["https://www.bbc.com/1", "https://www.bbc.com/2"]


def test_facts_hold_on_their_days_only() -> None:
    sentence = "决赛定在七月十九日，地点是纽约新泽西体育场。"
    late = Editor(default_show(), dt.date(2026, 11, 30), [])
    assert "地点" in sentence
    held = [fact.text for fact in default_show().facts_on(dt.date(2026, 11, 30))]
    assert sentence not in held
    assert late.problems(Scripts("这届世界杯的决赛是七月十九日踢的。", "這屆世界盃的決賽是七月十九日踢的。")) == []


# What was read in this run, and nothing else


def test_only_pages_of_this_run_count(tmp_path: Path) -> None:
    opened = reading({"https://www.bbc.com/1": BRAZIL, "https://www.bbc.com/2": NORWAY})(tmp_path)
    timed = [type("T", (), {"call": call})() for call in opened.calls]
    assert [found.url for found in pages_read(tmp_path, timed[:1])] == ["https://www.bbc.com/1"]
    (tmp_path / "1.txt").write_text("changed since")
    assert [found.url for found in pages_read(tmp_path, timed)] == ["https://www.bbc.com/1"]
    with (tmp_path / "index.jsonl").open("a") as index:
        index.write('{"url": "https://www.bbc.com/9", "file": "../../etc/passwd", "sha256": "0"}\n{torn')
    assert len(pages_read(tmp_path, timed)) == 1


# Runs

PAGES = {f"https://www.bbc.com/sport/{at}": text for at, text in enumerate((BRAZIL, NORWAY, JAPAN))}
RULES = ScriptRules(shortest=5, longest=400, retries=1)


def script(sentence: str) -> str:
    return f"各位听众，早上好。\n{sentence}\n我们明天再见。"


def write(out: Path, sentence: str, open_runtime: Any, events: list[Any] | None = None) -> Episode:
    from scripted_model import call

    read: list[Any] = [[call("execute_code", "read", code="x")], "stories"]
    turns: Mapping[str, list[Any]] = {
        "SearchAgent": [*read, "more stories", "more stories"],
        "ContentAgent": ["outline"],
        "GenScriptAgent": [blocks(script(sentence))] * 2,
    }
    model = Model(kind="openai", name="m", client=lambda agent: ScriptedClient(turns[agent]))
    listener = events.append if events is not None else lambda _: None
    return asyncio.run(
        run_episode(day=DAY, out=out, model=model, open_runtime=open_runtime, rules=RULES, listener=listener)
    )


def saved(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and "drafts" not in str(path))


def test_a_script_with_sources_is_saved_and_says_which(tmp_path: Path) -> None:
    episode = write(tmp_path, "巴西队以三比一战胜摩洛哥队。", reading(PAGES))
    record = json.loads(episode.folder.episode.read_text(encoding="utf-8"))["editor"]
    assert (record["sources_required"], record["samples"], len(record["pages"])) == (3, False, 3)
    assert [(s["text"], s["pages"]) for s in record["sentences"]] == [("巴西队以三比一战胜摩洛哥队。", [1])]
    assert not DayFolder(tmp_path, DAY).pages.exists()


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        ("巴西队以四比一战胜摩洛哥队。", "gives the score 四比一 (4-1)"),
        ("意大利队也赢了。", "No page that was read names 意大利 (Italy)"),
    ],
)
def test_an_invented_score_and_a_team_that_no_page_names(tmp_path: Path, sentence: str, problem: str) -> None:
    with pytest.raises(ScriptRejected) as raised:
        write(tmp_path, sentence, reading(PAGES))
    assert problem in str(raised.value)
    assert saved(tmp_path) == []


def test_a_run_whose_every_fetch_fails(tmp_path: Path) -> None:
    events: list[Any] = []
    failing = (host_call("error", reason="the server answered 503"),)
    with pytest.raises(NotEnoughSources) as raised:
        write(tmp_path, "巴西队赢了。", lambda _: CannedRuntime(calls=failing), events)
    assert str(raised.value) == (
        "the show needs 3 pages as sources, and none with something to say was read; these fetches failed:\n"
        "- https://www.bbc.com/sport/football/world-cup: the server answered 503"
    )
    assert [event.search for event in events if isinstance(event, SearchReturned)] == [1]
    assert saved(tmp_path) == []


def test_a_run_that_fetches_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotEnoughSources) as raised:
        write(tmp_path, "巴西队赢了。", lambda _: CannedRuntime())
    assert str(raised.value) == "the show needs 3 pages as sources, and none with something to say was read"
    assert saved(tmp_path) == []


@pytest.mark.parametrize("client", [foundry, openai])
def test_every_fetch_fails_through_a_real_client(tmp_path: Path, client: Any) -> None:
    failing = (host_call("error", reason="the server answered 503"),)
    with model_server(obedient(lambda _: Reply(blocks(script("巴西队赢了。"))))) as (base_url, _):
        model = client(base_url)
        with pytest.raises(
            NotEnoughSources, match=r"these fetches failed:\n- https://www.bbc.com/.*: the server answered 503"
        ):
            asyncio.run(
                run_episode(
                    day=DAY,
                    out=tmp_path,
                    model=model,
                    open_runtime=lambda _: CannedRuntime(calls=failing),
                    rules=RULES,
                )
            )
    assert saved(tmp_path) == []


@pytest.mark.parametrize("client", [foundry, openai])
@pytest.mark.parametrize(
    ("sentence", "pages", "problem"),
    [
        ("巴西队以四比一战胜摩洛哥队。", PAGES, "gives the score 四比一 (4-1)"),
        ("意大利队也赢了。", PAGES, "No page that was read names 意大利 (Italy)"),
        ("巴西队赢了。", {}, "the show needs 3 pages as sources, and none with something to say was read"),
    ],
)
def test_through_a_real_client(tmp_path: Path, client: Any, sentence: str, pages: dict[str, str], problem: str) -> None:
    with model_server(obedient(lambda _: Reply(blocks(script(sentence))))) as (base_url, _):
        model = client(base_url)
        with pytest.raises(ScriptRejected) as raised:
            asyncio.run(run_episode(day=DAY, out=tmp_path, model=model, open_runtime=reading(pages), rules=RULES))
    assert problem in str(raised.value)
    assert saved(tmp_path) == []
