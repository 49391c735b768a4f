"""Characters whose traditional form depends on the words beside them, where a rule is right more often than a list."""

from __future__ import annotations

from collections.abc import Callable

from wcpod.podcast.hanzi.segments import Word

_SURNAMES = frozenset("于范余涂岳郁")
"""OpenCC changes them, and 里, when they stand alone. In a name they stay."""
_TRANSLITERATION = frozenset(
    "阿埃艾安奥巴贝比波博布查达戴丹德登迪蒂杜多厄恩尔法费菲佛弗福夫冈戈格古哈汉赫亨霍基吉加贾杰卡凯坎康科克肯库奎"
    "拉莱兰劳勒雷黎利莉林龙卢鲁路伦罗洛玛迈曼梅蒙米姆摩莫穆纳奈尼涅宁纽努诺欧帕潘庞佩彭皮普奇恰乔切琴让热瑞若萨塞桑"
    "瑟森沙绍施史舒朔斯丝苏索塔泰坦汤特腾提图托瓦韦维魏温沃乌西希席夏谢辛休许雅亚延扬耶伊易因英尤约泽扎詹哲兹"
)
_COUNTING = frozenset("一二两三四五六七八九十百千万亿几数半整每某这那哪另有0123456789")
_CLOSING = tuple("”’」』》）")
_NEAR = tuple("内外上下前后里旁边之")
_TIED = frozenset("好上紧牢住着成")
_DRY = frozenset(["亲戚", "衣服", "毛巾", "爹", "妈", "儿子", "女儿", "爸爸", "妈妈"])
_BARELY = frozenset(["难以", "不能", "无法", "不可"])
_TITLES = frozenset(
    ("皇后", "国王", "女王", "天皇", "总统", "总理", "联盟", "联赛", "联合会", "优胜者", "挑战者", "锦标")
)

_Rule = Callable[[Word, Word, Word], "str | None"]
_NOTHING = Word("", "x")


def by_rule(words: list[Word], index: int) -> str | None:
    """What a word becomes beside its neighbours; None where no rule knows better than OpenCC."""
    before = words[index - 1] if index else _NOTHING
    after = words[index + 1] if index + 1 < len(words) else _NOTHING
    rule = _RULES.get(words[index].text)
    return rule(before, words[index], after) if rule else None


def is_trophy(word: Word) -> bool:
    """Whether it is the proper name of a cup that is played for."""
    return len(word.text) > 2 and word.text.endswith("杯") and word.kind == "nz"


def in_a_name(words: list[Word], index: int, converted: str) -> str:
    """A converted word, with what OpenCC took for another word as it was if this is a name.

    The segmenter takes more for a name than is one. So 里 stays only among characters of transliterations, and a
    surname only where no verb, adverb or number stands before it.
    """
    word, before = words[index], words[index - 1] if index else _NOTHING
    text = word.text
    if len(text) != len(converted) or len(text) == 1 or not word.kind.startswith(("nr", "ns")):
        return converted
    kept = list(converted)
    if text[0] in _SURNAMES and not before.kind.startswith(("v", "d", "a", "m")):
        kept[0] = text[0]
    if _TRANSLITERATION.issuperset(text.replace("里", "")):
        kept = [old if old == "里" else new for old, new in zip(text, kept, strict=True)]
    return "".join(kept)


def _measure(before: Word, _: Word, after: Word) -> str:
    """隻 counts animals and things, 只 is "only"."""
    counted = before.text[-1:] in _COUNTING and after.kind.startswith(("n", "j"))
    return "隻" if counted or before.text in ("船", "舰") else "只"


def _inside(before: Word, _: Word, __: Word) -> str:
    """里 inside a name that the segmenter does not know, or where there is nothing to be inside of; else 裡."""
    if not before.text or not _is_han(before.text):
        return "裡" if before.text[-1:] in _CLOSING else "里"
    return "里" if _is_piece(before) else "裡"


def _than(before: Word, _: Word, after: Word) -> str:
    """于 as the first character of a name that the segmenter does not know; else 於."""
    starts = not before.text or not _is_han(before.text)
    return "于" if starts and _is_piece(after) else "於"


def _surname(_: Word, __: Word, ___: Word) -> str:
    return "范"


def _tie(_: Word, __: Word, after: Word) -> str:
    """繫 is to tie, 系 a department."""
    return "繫" if after.text in _TIED else "系"


def _made_by_oneself(before: Word, _: Word, after: Word) -> str:
    """自製 is what one has made, 自制 to hold oneself back."""
    return "自制" if before.text in _BARELY or after.text[:1] in ("力", "能") else "自製"


def _on_the_line(_: Word, __: Word, after: Word) -> str | None:
    """在線 before a place, as in 在線內; else OpenCC's word for online."""
    return "在線" if after.text.startswith(_NEAR) else None


def _clock(_: Word, __: Word, ___: Word) -> str:
    """鐘 is a clock and its time; 鍾 stands in names, which are longer."""
    return "鐘"


def _dry(_: Word, __: Word, after: Word) -> str:
    """乾 before what is dry or related only in name; else 幹, to do."""
    return "乾" if after.text in _DRY else "幹"


def _to_do(before: Word, _: Word, __: Word) -> str | None:
    """幹 is to do, where somebody can, wants to or has to; else OpenCC's 乾, dry."""
    return "幹的" if before.kind.startswith(("v", "r")) else None


def _cup(before: Word, _: Word, __: Word) -> str | None:
    """A country's or a king's cup is a trophy."""
    return "盃" if before.kind.startswith("ns") or before.text in _TITLES else None


_RULES: dict[str, _Rule] = {
    "只": _measure,
    "里": _inside,
    "于": _than,
    "范": _surname,
    "系": _tie,
    "自制": _made_by_oneself,
    "在线": _on_the_line,
    "杯": _cup,
    "钟": _clock,
    "干": _dry,
    "干的": _to_do,
}


def _is_piece(word: Word) -> bool:
    return len(word.text) == 1 and word.text in _TRANSLITERATION


def _is_han(text: str) -> bool:
    return "\u3400" <= text[-1] <= "\u9fff"
