# mypy: ignore-errors
import datetime as dt
import hashlib
import json
import re
from zoneinfo import ZoneInfo

outline = json.loads("INPUT_outline")
phrases = json.loads("INPUT_phrases")
names = json.loads("INPUT_names")
facts = json.loads("INPUT_facts")
season = json.loads("INPUT_season")
title = json.loads("INPUT_title")
zone = ZoneInfo(json.loads("INPUT_zone"))
day = dt.date.fromisoformat(json.loads("INPUT_day"))
fill_to = json.loads("INPUT_fill_to")

REHEARSAL = "（彩排稿：由预排程序根据示例网页生成，并非真实新闻）"
DIGITS = "零一二三四五六七八九"
HOURS = ((5, "凌晨"), (8, "早上"), (12, "上午"), (13, "中午"), (18, "下午"), (24, "晚上"))


def number(value):
    """A number below one hundred million as it is spoken."""
    value = int(str(value).replace(",", ""))
    for unit, word in ((10000, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if value >= unit:
            head, rest = divmod(value, unit)
            gap = "零" if rest and rest < unit // 10 else ""
            start = "" if unit == 10 and head == 1 else number(head)
            return start + word + gap + (number(rest) if rest else "")
    return DIGITS[value]


def amount(value):
    """A number before a measure word: of "2 matches" the number is taken."""
    value = int(re.match(r"[\d,]+", str(value))[0].replace(",", ""))
    return "两" if value == 2 else number(value)


def score(text):
    return "比".join(number(part) for part in text.split("-"))


def reverse(text):
    return score("-".join(reversed(text.split("-"))))


def about(text):
    """A large number, cut to its thousands."""
    return number(int(text.replace(",", "")) // 1000 * 1000) + "多"


def date(moment):
    return f"{number(moment.month)}月{number(moment.day)}日"


def whole_date(moment):
    return "".join(DIGITS[int(digit)] for digit in str(moment.year)) + "年" + date(moment)


def weekday(moment):
    return "星期" + "一二三四五六日"[moment.weekday()]


def clock(moment):
    part = next(word for end, word in HOURS if moment.hour < end)
    hour = moment.hour - 12 if moment.hour > 12 else moment.hour
    minutes = {0: "", 30: "半"}.get(moment.minute, number(moment.minute) + "分")
    return f"{part}{amount(hour)}点{minutes}"


def moment_of(text):
    """A time such as "20:00 America/Mexico_City", on the day of the episode."""
    hour, place = text.split()
    return dt.datetime.combine(day, dt.time.fromisoformat(hour), ZoneInfo(place))


def there(text):
    return clock(moment_of(text))


def here(text):
    moment = moment_of(text).astimezone(zone)
    return {-1: "前一天", 0: "当天", 1: "第二天"}[(moment.date() - day).days] + clock(moment)


WAYS = {f.__name__: f for f in (number, amount, score, reverse, about, there, here, date, whole_date, weekday)}
used = {}


def drawn(key):
    """A number that differs from day to day."""
    return int.from_bytes(hashlib.sha256(f"{day} {key}".encode()).digest()[:8], "big")


def choose(key, options):
    """The day decides; what was said once is not said again before the others were."""
    used[key] = used.get(key, -1) + 1
    order = sorted(options, key=lambda option: drawn(f"{key} {option}"))
    return order[used[key] % len(order)]


def spoken(value, way):
    if way:
        return WAYS[way](value)
    if value in phrases["words"]:
        return choose(value, phrases["words"][value])
    return names.get(value, str(value))


def fill(template, values):
    return re.sub(r"\{(\w+)(?:\|(\w+))?\}", lambda found: spoken(values[found[1]], found[2]), template)


def say(sentences, values, key):
    text = ""
    for at, sentence in enumerate(sentences):
        entries = values.get(sentence["each"], []) if sentence["each"] else [{}]
        for entry in entries:
            known = {**values, **entry}
            if all(known.get(fact) for fact in sentence["when"]) and not any(map(known.get, sentence["unless"])):
                text += fill(choose(f"{key} {at}", sentence["any"]), known)
    return text


def compose(background):
    used.clear()
    values = {"title": title, "day": day, "count": len(outline), "season": season, "in_season": not season}
    paragraphs = [REHEARSAL, say(phrases["opening"], values, "opening")]
    told = {}
    for place, story in enumerate(outline):
        kind = next(kind for kind in phrases["stories"] if kind["kind"] == story["story"])
        order = told[story["story"]] = told.get(story["story"], 0) + 1
        flags = {"lead": place == 0, "first": order == 1, "later": order > 1, "last": place == len(outline) - 1}
        paragraphs.append(say(kind["say"], {**values, **story, **flags}, story["story"]))
    if background:
        paragraphs.append(say(phrases["background"], values, "background") + "".join(background))
    paragraphs.append(say(phrases["closing"], values, "closing"))
    return "\n\n".join(paragraphs)


def han(text):
    return sum("\u3400" <= character <= "\u9fff" for character in text)


background = []
for fact in sorted(facts, key=drawn):
    if han(compose(background)) >= fill_to:
        break
    background.append(fact)
script = compose(background)
print("COUNT han", han(script))
print("SCRIPT " + json.dumps(script, ensure_ascii=False))
