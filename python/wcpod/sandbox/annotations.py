"""What an annotation asks of a value out of JSON.

`reader_of` turns an annotation into a function that checks a value and gives what the tool is to get: the value itself,
or what stands for it in Python (a tuple, a set, an enum's member, a date, a dataclass). An annotation that JSON has no
form for is refused, so that no tool believes in a check that nobody makes.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

Reader = Callable[[Any, str], Any]
"""`read(value, where)` gives the checked value, or raises a TypeError that begins with `where`."""

_ANYTHING = (Any, object)
_SCALARS: dict[Any, type] = {str: str, bool: bool, None: type(None), type(None): type(None)}
_DATES = (datetime.date, datetime.datetime, datetime.time)
_LISTS = (
    list,
    collections.abc.Collection,
    collections.abc.Iterable,
    collections.abc.MutableSequence,
    collections.abc.Sequence,
)
_SETS: dict[Any, type] = {
    set: set,
    frozenset: frozenset,
    collections.abc.Set: frozenset,
    collections.abc.MutableSet: set,
}
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class Unreadable(TypeError):
    """JSON has no form for this annotation."""


def reader_of(hint: Any) -> Reader:
    """The reader of an annotation.

    Raises:
        Unreadable: it names the part of the annotation that JSON has no form for.
    """
    return _Readers().of(hint)


def spelled(hint: Any) -> str:
    """An annotation as one writes it."""
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint).replace("typing.", "")


class _Readers:
    """The readers of one annotation's parts. Records are kept, because they may contain themselves."""

    def __init__(self) -> None:
        self._records: dict[Any, Reader] = {}

    def of(self, hint: Any) -> Reader:
        if hint in _ANYTHING:
            return lambda value, _: value
        if isinstance(hint, typing.TypeVar):
            return self.of(hint.__bound__ or Any)
        if hasattr(hint, "__supertype__"):  # a NewType
            return self.of(hint.__supertype__)
        if hasattr(hint, "__value__"):  # a `type` statement
            return self.of(hint.__value__)
        origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
        if origin is typing.Annotated:
            return self.of(arguments[0])
        if origin in (typing.Union, types.UnionType):
            return self._union(hint, arguments)
        if origin is typing.Literal:
            return _literal(hint, arguments)
        return _scalar(hint) or self._collection(hint, origin, arguments) or self._class(hint)

    def _union(self, hint: Any, arguments: tuple[Any, ...]) -> Reader:
        optional = type(None) in arguments
        readers = [self.of(part) for part in arguments if part is not type(None)]

        def read(value: Any, where: str) -> Any:
            if optional and value is None:
                return None
            if len(readers) == 1 and value is not None:
                return readers[0](value, where)  # whose error says more
            for reader in readers:
                try:
                    return reader(value, where)
                except TypeError:
                    continue
            raise _mismatch(where, hint, value)

        return read

    def _collection(self, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> Reader | None:
        if origin in _LISTS or origin in _SETS:
            return self._list(hint, _SETS.get(origin, list), arguments[0] if arguments else Any)
        if hint in (tuple, tuple):
            return self._list(hint, tuple, Any)
        if origin is tuple:
            same = len(arguments) == 2 and arguments[1] is ...
            return self._list(hint, tuple, arguments[0]) if same else self._tuple(hint, arguments)
        if origin in _MAPPINGS:
            key, item = arguments or (str, Any)
            if key not in (str, *_ANYTHING) and not isinstance(key, typing.TypeVar):
                raise Unreadable(f"{spelled(hint)} (the keys of a JSON object are str)")
            return self._mapping(hint, item)
        return None

    def _list(self, hint: Any, made: Callable[[list[Any]], Any], item: Any) -> Reader:
        reader = self.of(item)

        def read(value: Any, where: str) -> Any:
            if not isinstance(value, list):
                raise _mismatch(where, hint, value)
            values = [reader(one, f"{where}[{index}]") for index, one in enumerate(value)]
            if made is list:
                return values
            try:
                result = made(values)
            except TypeError as error:
                raise TypeError(f"{where} must be {spelled(hint)}: {error}") from None
            if len(result) != len(values):
                raise TypeError(f"{where} must be {spelled(hint)}, and holds the same value twice")
            return result

        return read

    def _tuple(self, hint: Any, arguments: tuple[Any, ...]) -> Reader:
        readers = [self.of(part) for part in arguments]

        def read(value: Any, where: str) -> Any:
            if not isinstance(value, list):
                raise _mismatch(where, hint, value)
            if len(value) != len(readers):
                raise TypeError(f"{where} must be {spelled(hint)}, not {len(value)} values")
            return tuple(reader(one, f"{where}[{n}]") for n, (reader, one) in enumerate(zip(readers, value)))  # noqa: B905

        return read

    def _mapping(self, hint: Any, item: Any) -> Reader:
        reader = self.of(item)

        def read(value: Any, where: str) -> Any:
            if not isinstance(value, dict):
                raise _mismatch(where, hint, value)
            return {name: reader(one, f"{where}[{name!r:.50}]") for name, one in value.items()}

        return read

    def _class(self, hint: Any) -> Reader:
        if hint in self._records:
            return self._records[hint]
        if not isinstance(hint, type):
            raise Unreadable(spelled(hint))
        if issubclass(hint, enum.Enum):
            return _enum(hint)
        if issubclass(hint, dict) and hasattr(hint, "__required_keys__"):
            return self._record(hint, *_keys_of(hint), made=dict)
        if dataclasses.is_dataclass(hint):
            return self._record(hint, *_fields_of(hint), made=hint)
        raise Unreadable(spelled(hint))

    def _record(self, hint: Any, hints: Mapping[str, Any], required: set[str], made: Callable[..., Any]) -> Reader:
        readers: dict[str, Reader] = {}

        def read(value: Any, where: str) -> Any:
            if not isinstance(value, dict):
                raise _mismatch(where, hint, value)
            for name in value:
                if name not in readers:
                    raise TypeError(f"{where} must be {spelled(hint)}, which has no {name!r:.50}")
            for name in readers:
                if name in required and name not in value:
                    raise TypeError(f"{where} must be {spelled(hint)}, and lacks {name!r}")
            return made(**{name: readers[name](one, f"{where}.{name}") for name, one in value.items()})

        self._records[hint] = read
        readers.update({name: self.of(part) for name, part in hints.items()})
        return read


def _scalar(hint: Any) -> Reader | None:
    if hint in _SCALARS:
        kind = _SCALARS[hint]
        return lambda value, where: value if isinstance(value, kind) else _raise(_mismatch(where, hint, value))
    if hint is int:
        return lambda value, where: value if type(value) is int else _raise(_mismatch(where, hint, value))
    if hint is float:
        return _float
    return _date(hint) if hint in _DATES else None


def _float(value: Any, where: str) -> Any:
    if type(value) not in (int, float):
        raise _mismatch(where, float, value)
    try:
        float(value)
    except OverflowError:
        raise TypeError(f"{where} must be float, and is too large for one") from None
    return value


def _date(hint: Any) -> Reader:
    def read(value: Any, where: str) -> Any:
        try:
            # Python 3.10 does not know the letter.
            return hint.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)
        except (AttributeError, TypeError, ValueError):
            raise TypeError(f"{where} must be a {spelled(hint)} as ISO 8601 writes it, not {value!r:.50}") from None

    return read


def _literal(hint: Any, arguments: tuple[Any, ...]) -> Reader:
    if not all(part is None or type(part) in (bool, int, str) for part in arguments):
        raise Unreadable(spelled(hint))

    def read(value: Any, where: str) -> Any:
        if any(type(value) is type(part) and value == part for part in arguments):
            return value
        raise TypeError(f"{where} must be one of {', '.join(map(repr, arguments))}, not {value!r:.50}")

    return read


def _enum(hint: type[enum.Enum]) -> Reader:
    def read(value: Any, where: str) -> Any:
        for member in hint:
            if type(value) is type(member.value) and value == member.value:
                return member
        values = ", ".join(repr(member.value) for member in hint)
        raise TypeError(f"{where} must be one of {values}, not {value!r:.50}")

    return read


def _keys_of(hint: Any) -> tuple[dict[str, Any], set[str]]:
    """The keys of a TypedDict with their annotations, and which of them must be there."""
    required = set(hint.__required_keys__)
    hints = {}
    for name, part in typing.get_type_hints(hint, include_extras=True).items():
        while (word := getattr(typing.get_origin(part), "_name", None)) in ("NotRequired", "ReadOnly", "Required"):
            if word != "ReadOnly":
                (required.add if word == "Required" else required.discard)(name)
            part = typing.get_args(part)[0]
        hints[name] = part
    return hints, required


def _fields_of(hint: Any) -> tuple[dict[str, Any], set[str]]:
    """The fields of a dataclass that its constructor takes, and which of them must be there."""
    hints = typing.get_type_hints(hint, include_extras=True)
    fields = [field for field in dataclasses.fields(hint) if field.init]
    missing = dataclasses.MISSING
    required = {one.name for one in fields if one.default is missing and one.default_factory is missing}
    return {field.name: hints[field.name] for field in fields}, required


def _mismatch(where: str, hint: Any, value: Any) -> TypeError:
    return TypeError(f"{where} must be {spelled(hint)}, not {type(value).__name__}")


def _raise(error: Exception) -> Any:
    raise error
