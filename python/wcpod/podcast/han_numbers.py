"""Numbers as Mandarin speaks them, in simplified or traditional characters: 八万两千五百, 七点三二, 一百二."""

from __future__ import annotations

_DIGITS = {
    **{character: value for value, character in enumerate("零一二三四五六七八九")},
    "〇": 0, "两": 2, "兩": 2, "俩": 2,
}  # fmt: skip
_UNITS = {"十": 10, "百": 100, "千": 1000}
_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_POINTS = "点點"

_SPOKEN = "".join((*_DIGITS, *_UNITS, *_MYRIADS))
DIGIT = f"[{''.join(_DIGITS)}]"
NUMBER = rf"(?:[{_SPOKEN}]+|\d[\d,]*)"
"""Pattern of a whole number, in Han or in digits."""


def value_of(text: str) -> int | float | None:
    """The number that `text` says; None if it is none, such as 一零百."""
    if text[:1].isdigit() and text.isascii():
        return int(text.replace(",", ""))
    for point in _POINTS:
        whole, found, part = text.partition(point)
        if found:
            value = _whole(whole)
            if value is None or not part or any(character not in _DIGITS for character in part):
                return None
            return float(f"{value}.{''.join(str(_DIGITS[character]) for character in part)}")
    return _whole(text)


def precision_of(text: str) -> int:
    """The place of the last digit that is said: 1000 of 六万八千, so that 六万八千多 is 68,000 to 68,999."""
    value = value_of(text)
    if not isinstance(value, int) or value == 0 or text.isascii():
        return 1
    if all(character in _DIGITS for character in text):
        return 1
    place = 1
    while value % (place * 10) == 0:
        place *= 10
    return place


def _whole(text: str) -> int | None:
    if not text or any(character not in _SPOKEN for character in text):
        return None
    if all(character in _DIGITS for character in text):
        return int("".join(str(_DIGITS[character]) for character in text))
    total, rest = 0, text
    for myriad in (10**8, 10**4):
        for character in rest:
            if _MYRIADS.get(character) == myriad:
                head, _, rest = rest.partition(character)
                value = _below_myriad(head)
                if value is None or value == 0:
                    return None
                total += value * myriad
                if len(rest) == 1 and rest in _DIGITS and rest not in "零〇":
                    return total + _DIGITS[rest] * myriad // 10  # 八万五 is 85,000
                break
    if not rest:
        return total
    value = _below_myriad(rest)
    return None if value is None else total + value


def _below_myriad(text: str) -> int | None:
    total, digit, last_unit = 0, None, 10**4
    for position, character in enumerate(text):
        if character in _DIGITS:
            if digit not in (None, 0):
                return None
            digit = _DIGITS[character]
            continue
        unit = _UNITS.get(character)
        if unit is None or unit >= last_unit:
            return None
        if digit is None and not (unit == 10 and total == 0 and position == 0):
            return None
        if digit == 0:
            return None
        total += (1 if digit is None else digit) * unit
        digit, last_unit = None, unit
    if digit:
        short = last_unit in (100, 1000) and text[-2] not in "零〇"
        total += digit * (last_unit // 10 if short else 1)  # 一百二 is 120
    return total
