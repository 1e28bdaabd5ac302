"""Finds the rows of a dump that a query may want, by bytes, and parses only those.

    <row Id="4" PostTypeId="1" CreationDate="2008-07-31T21:42:52.667" Tags="&lt;c#&gt;&lt;winforms&gt;" … />

`<` never stands inside an attribute, so `<row ` begins a row wherever it is found: a dump may be cut there at any
place. Hyperscan looks for the tags, spelled as old and as new dumps spell them, at several times the speed at which
an XML parser could go; what it finds is parsed, and asked again, so a tag's name in a text selects nothing.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

from phalanx.study.collect.post import Post, clean, tags_of_dump, text_of_html
from phalanx.study.collect.presets import Preset
from phalanx.study.collect.stackexchange import address_of

ROW = b"<row "
_QUESTION = b' PostTypeId="1"'
_ATTRIBUTE = re.compile(r'([A-Za-z]+)="([^"]*)"')
LONGEST_ROW = 64 << 20  # a "row" longer than this is no row: the file is damaged or something else


@dataclass(slots=True)
class Found:
    """What a part of a dump held."""

    posts: list[Post] = field(default_factory=list)
    rows: int = 0
    candidates: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)  # reason, sample


class Finder:
    """Finds one preset's questions in pieces of a dump."""

    def __init__(self, preset: Preset) -> None:
        self._preset = preset
        self._wanted = frozenset(tag.lower() for tag in preset.tags)
        self._database = _compile_tags(preset.tags) if preset.tags else None

    def find(self, piece: bytes | bytearray, found: Found, end: int | None = None) -> None:
        """Add what a piece of whole rows holds; what lies behind `end` is not looked at."""
        end = len(piece) if end is None else end
        found.rows += _count_rows(piece, end)
        for row in self._candidates(piece, end):
            found.candidates += 1
            post = self._parse(row, found)
            if post is not None:
                found.posts.append(post)

    def _candidates(self, piece: bytes | bytearray, end: int) -> Iterator[bytes]:
        if self._database is None:
            view = memoryview(piece)[:end]
            places: Iterable[int] = (match.start() for match in re.finditer(re.escape(ROW), view))
        else:
            places = _scan(self._database, piece)
        done = -1
        for place in places:
            if place < done or place > end:
                continue  # one more tag of the row before, or left over from an earlier piece
            start = piece.rfind(ROW, 0, min(place + len(ROW), end))
            following = piece.find(ROW, start + len(ROW), end)
            done = end if following < 0 else following
            row = bytes(piece[start:done])
            if start >= 0 and _QUESTION in row:
                yield row

    def _parse(self, row: bytes, found: Found) -> Post | None:
        text = row[: row.rfind(b"/>") + 2]
        try:
            attributes = dict(ElementTree.fromstring(text).attrib)
        except ElementTree.ParseError as error:
            attributes = _salvage(text)
            if "Id" not in attributes or "Body" not in attributes:
                found.problems.append((f"a row that is no XML ({error})", text[:200].decode("utf-8", "replace")))
                return None
            found.problems.append(
                ("a row with odd bytes, read as far as it goes", text[:200].decode("utf-8", "replace"))
            )
        except (UnicodeDecodeError, ValueError) as error:
            found.problems.append((f"a row that cannot be decoded ({error})", text[:200].decode("utf-8", "replace")))
            return None
        try:
            return self._post(attributes)
        except (KeyError, ValueError) as error:
            found.problems.append(
                (
                    f"a question that lacks what it needs ({type(error).__name__}: {error})",
                    text[:200].decode("utf-8", "replace"),
                )
            )
            return None

    def _post(self, attributes: dict[str, str]) -> Post | None:
        if attributes.get("PostTypeId") != "1":
            return None
        tags = tags_of_dump(attributes.get("Tags", ""))
        if self._wanted and self._wanted.isdisjoint(tag.lower() for tag in tags):
            return None
        title, body = clean(attributes["Title"]), clean(text_of_html(attributes["Body"]))
        number, site = int(attributes["Id"]), self._preset.site
        post = Post(
            key=f"{site}:{number}",
            kind="question",
            place=site,
            number=number,
            url=f"{address_of(site)}/questions/{number}",
            title=title,
            body=body,
            author=attributes.get("OwnerUserId") or attributes.get("OwnerDisplayName"),
            created=_utc(attributes["CreationDate"]),
            updated=_utc(attributes.get("LastActivityDate") or attributes["CreationDate"]),
            closed=_utc(attributes["ClosedDate"]) if attributes.get("ClosedDate") else None,
            tags=tags,
            replies=(),
            preset=self._preset.name,
        )
        return post if self._preset.wants(post, settled=bool(attributes.get("AcceptedAnswerId"))) else None


def _count_rows(piece: bytes | bytearray, end: int) -> int:
    """How many rows begin before `end`: every `<` but those of the document around them. One byte is counted faster than five."""
    first = piece.find(ROW, 0, end)
    if first < 0:
        return 0
    around = piece.count(b"</", max(end - 64, first), end)
    return piece.count(b"<", first, end) - around


def whole_rows(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut a stream into pieces that begin with a row and end before one."""
    rest = b""
    for block in blocks:
        cut = block.rfind(ROW)
        # A block may end inside "<row ": then the end of the last block and this one are looked at together.
        if cut < 0 or (rest and len(rest) < len(ROW)):
            rest += block
            cut = rest.rfind(ROW)
            if cut <= 0:
                if len(rest) > LONGEST_ROW:
                    rest = rest[-len(ROW) :]
                continue
            yield rest[:cut]
            rest = rest[cut:]
        else:
            yield rest + block[:cut]
            rest = block[cut:]
    if rest:
        yield rest


@lru_cache(maxsize=8)
def _compile_tags(tags: tuple[str, ...]) -> Any:
    import hyperscan

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    names = "|".join(re.escape(tag.replace("&", "&amp;")) for tag in tags)
    expression = f"(?:&lt;|\\|)(?:{names})(?:&gt;|\\|)".encode()
    flags = hyperscan.HS_FLAG_CASELESS | hyperscan.HS_FLAG_DOTALL
    database.compile(expressions=[expression], ids=[0], elements=1, flags=[flags])
    return database


def _scan(database: Any, piece: bytes | bytearray) -> list[int]:
    places: list[int] = []
    database.scan(piece, match_event_handler=lambda _id, _start, end, _flags, _context: places.append(end))
    return places


def _salvage(row: bytes) -> dict[str, str]:
    """The attributes of a row that XML does not allow: control characters, bytes that are no UTF-8."""
    import html

    text = row.decode("utf-8", "replace")
    return {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(text)}


def _utc(stamp: str) -> str:
    """Dumps write times in UTC without saying so, with milliseconds."""
    return f"{stamp.partition('.')[0].rstrip('Z')}Z"
