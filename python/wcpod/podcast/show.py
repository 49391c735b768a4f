"""A show is a folder. `show.toml` says what it is about, where it may read, and what its script must be.

    show.toml                       this file's `Show`
    cover.png                       optional: the picture of its feed, square, 1400 to 3000 pixels wide
    skills/NAME/SKILL.md            optional: takes the place of the skill of that name in `wcpod/skills`
    rehearsal/rehearsal.toml        optional: what the stand-in for a model says (`wcpod.podcast.rehearsal.phrases`)
    rehearsal/pages/index.jsonl     optional: its sample pages, an archive as `--record` makes one

docs/shows.md leads through all of it.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from wcpod.exceptions import ShowError
from wcpod.sandbox.policy import FetchPolicy
from wcpod.shows import DEFAULT_SHOW, SHOW_FILE, shipped_shows

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LARGEST = 1024 * 1024
_TEMPLATE = Path(__file__).resolve().parent / "show_template"
_HINT = "docs/shows.md describes each key; `wcpod show new PATH` makes a folder that is right"


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def _han(text: str) -> str:
    if not re.search("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U000323af]", text):
        raise ValueError("must hold Han characters")
    return text


def _https(address: str) -> str:
    if not re.fullmatch(r"https://[^\s/?#]+\S*", address):
        raise ValueError("must be an address that begins with https://")
    return address


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ValueError('must be a time zone such as "Asia/Shanghai"') from None
    return name


Text = Annotated[str, AfterValidator(_filled)]
Han = Annotated[str, AfterValidator(_filled), AfterValidator(_han)]
Https = Annotated[str, AfterValidator(_https)]
Zone = Annotated[str, AfterValidator(_zone)]


class Table(BaseModel):
    """A table of a show's files: no key that is not known, no value of another type, and nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class Variants(Table):
    """A text in the two written forms."""

    simplified: Han
    traditional: Han


class Pages(Table):
    """Where the show may read. The sandbox's host enforces it at every redirect."""

    hosts: list[Text] = Field(min_length=1)
    start: list[Https] = Field(min_length=1)
    paths: list[Text] | None = None

    @model_validator(mode="after")
    def _allowed(self) -> Pages:
        policy = self.policy()
        for address in self.start:
            if not (decision := policy.check(address)).allowed:
                raise ValueError(f"start: {address}: {decision.reason}; add its host to hosts")
        return self

    def policy(self) -> FetchPolicy:
        """What `fetch_url` may read."""
        return FetchPolicy(self.hosts, paths=self.paths)


class Season(Table):
    """The days on which there is something to tell, and what holds before and after them."""

    first: dt.date
    last: dt.date
    before: Han
    after: Han

    @model_validator(mode="after")
    def _in_order(self) -> Season:
        if self.first > self.last:
            raise ValueError("first must not be after last")
        return self


class Clock(Table):
    """Time zones: of the listeners, and of the places where things happen."""

    listeners: Zone = "Asia/Shanghai"
    places: list[Zone] = Field(default_factory=list)


class Script(Table):
    """What the script must be."""

    length: list[int] = Field(default=[1250, 1400], min_length=2, max_length=2)
    sources: int = Field(default=3, ge=0)
    greetings: list[Han] = Field(min_length=1)
    goodbyes: list[Han] = Field(min_length=1)
    allowed: str = ""

    @model_validator(mode="after")
    def _in_order(self) -> Script:
        if not 0 < self.length[0] <= self.length[1]:
            raise ValueError("length must be [fewest, most] Han characters, such as [1250, 1400]")
        return self


class Skills(Table):
    """Names of the agents' skills."""

    search: Text = "search-news"
    content: Text = "shape-content"
    script: Text = "write-script"


class Fact(Table):
    """Something that may be said without a page of the day, on the days on which it holds."""

    text: Han
    source: Https
    first: dt.date | None = Field(default=None, alias="from")
    last: dt.date | None = Field(default=None, alias="until")

    @model_validator(mode="after")
    def _in_order(self) -> Fact:
        if self.first and self.last and self.first > self.last:
            raise ValueError("from must not be after until")
        return self

    def holds(self, day: dt.date) -> bool:
        """Whether it holds on that day."""
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)


class Name(Table):
    """A name: the ways in which pages spell it, and its usual form in the two versions of the script.

    A `word` is no name that the editor looks for: it only says how Taiwan puts what the mainland says otherwise.
    """

    kind: Literal["team", "person", "place", "word"]
    pages: list[Text] = Field(default_factory=list)
    simplified: Han
    traditional: Han

    @model_validator(mode="after")
    def _spelled(self) -> Name:
        if self.kind != "word" and not self.pages:
            raise ValueError("pages must have at least 1 way in which pages spell the name")
        return self


class Show(Table):
    """What `show.toml` says."""

    topic: Text
    title: Variants
    about: Variants
    pages: Pages
    script: Script
    season: Season | None = None
    clock: Clock = Clock()
    skills: Skills = Skills()
    facts: list[Fact] = Field(default_factory=list)
    names: list[Name] = Field(default_factory=list)
    folder: Path = Field(default=Path(), exclude=True)

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def sample_pages(self) -> Path | None:
        """The archive of sample pages, if the show has one."""
        pages = self.folder / "rehearsal" / "pages"
        return pages if (pages / "index.jsonl").is_file() else None

    @property
    def words(self) -> dict[str, str]:
        """Names and words: simplified form → the form that is usual in Taiwan."""
        return {name.simplified: name.traditional for name in self.names}

    def facts_on(self, day: dt.date) -> list[Fact]:
        """The facts that hold on that day."""
        return [fact for fact in self.facts if fact.holds(day)]

    def out_of_season(self, day: dt.date) -> str | None:
        """What holds on a day before or after the season, in simplified characters; None within it."""
        if self.season is None or self.season.first <= day <= self.season.last:
            return None
        return self.season.before if day < self.season.first else self.season.after


def find_show(place: str | Path) -> Show:
    """The show in a folder, or the one of that name that comes with wcpod.

    Raises:
        ShowError: if there is none, or its files are wrong; one line for each thing, with file, key, what to do.
    """
    shipped = shipped_shows()
    folder = Path(place)
    if isinstance(place, str) and place in shipped:
        folder = shipped[place]
    elif not folder.is_dir():
        raise ShowError(
            f"there is no show {str(place)!r}: no folder of that name, and none of wcpod's ({', '.join(shipped)})"
        )
    return load_show(folder)


def load_show(folder: Path) -> Show:
    """The show in that folder.

    Raises:
        ShowError: as `find_show`.
    """
    folder = folder.resolve()
    return read_table(folder / SHOW_FILE, Show, folder=folder)


def new_show(folder: Path) -> Path:
    """Make a folder with a small show that can be rehearsed at once; gives its path.

    Raises:
        ShowError: if there is something at that path, or it cannot be written.
    """
    if folder.exists() or folder.is_symlink():
        raise ShowError(f"{folder} exists already; nothing was changed. Choose another path")
    try:
        shutil.copytree(_TEMPLATE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise ShowError(f"cannot make {folder}: {error.strerror or error}") from error
    load_show(folder)
    return folder


@functools.cache
def default_show() -> Show:
    """The show that is written when none is chosen."""
    return load_show(shipped_shows()[DEFAULT_SHOW])


_AnyTable = TypeVar("_AnyTable", bound=Table)


def read_table(file: Path, kind: type[_AnyTable], **more: Any) -> _AnyTable:
    """The content of a TOML file.

    Raises:
        ShowError: with one line for each thing that is wrong: file, key, what to do.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ShowError(f"{file}: {error.strerror}\n{_HINT}") from None
    if len(data) > _LARGEST:
        raise ShowError(f"{file}: larger than {_LARGEST} bytes")
    try:
        content = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ShowError(f"{file}: not UTF-8 at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise ShowError(f"{file}: not TOML: {error}") from None
    if unknown := [key for key in more if key in content]:
        raise ShowError(f"{file}: {unknown[0]}: there is no such key; take it out\n{_HINT}")
    try:
        return kind.model_validate({**content, **more})
    except ValidationError as error:
        problems = [f"{file}: {_place(item['loc'])}: {_problem(item)}" for item in error.errors()]
        raise ShowError("\n".join([*problems, _HINT])) from None


def _place(parts: tuple[int | str, ...]) -> str:
    """`facts[2].text`: how the key is found in the file. Entries count from 1."""
    place = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in parts)
    return place.removeprefix(".") or "the file"


def _problem(item: Mapping[str, Any]) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind == "missing":
        return "is missing; add it"
    if kind == "extra_forbidden":
        return "there is no such key; take it out"
    if kind == "value_error":
        return str(context["error"])
    if kind == "too_short":
        return f"must have at least {context['min_length']}"
    if kind == "too_long":
        return f"must have at most {context['max_length']}"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}"
    return re.sub("^Input should", "must", str(item["msg"]))
