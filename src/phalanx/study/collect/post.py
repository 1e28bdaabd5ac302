"""One collected post, whatever its source; and how HTML bodies become text."""

import html
import re
from dataclasses import dataclass, fields
from html.parser import HTMLParser

_BLOCKS = frozenset(["p", "div", "br", "li", "ul", "ol", "h1", "h2", "h3", "h4", "tr", "blockquote", "hr"])
# Half a surrogate pair cannot be stored as UTF-8; nor do control characters mean anything in a text.
_UNSTORABLE = re.compile(r"[\ud800-\udfff\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True, slots=True)
class Post:
    """An issue, a discussion or a question. `author` is None for a deleted user; times are ISO 8601 in UTC."""

    key: str  # github:owner/name#12, github:owner/name/discussions#3, stackoverflow:4711
    kind: str  # issue, discussion, question
    place: str  # owner/name, or the site
    number: int
    url: str
    title: str
    body: str
    author: str | None
    created: str
    updated: str
    closed: str | None
    tags: tuple[str, ...]
    replies: tuple[str, ...]
    preset: str

    @property
    def text(self) -> str:
        """What its author wrote: what a diagnosis or a classifier reads."""
        return f"# {self.title}\n\n{self.body}"


POST_FIELDS = tuple(field.name for field in fields(Post))


def clean(text: object) -> str:
    """Text that can be stored: unpaired surrogates and control characters replaced."""
    return _UNSTORABLE.sub("\ufffd", str(text)) if text is not None else ""


def text_of_html(markup: str) -> str:
    """A body's text, with its code between fences, so that logs in it stay logs."""
    parser = _Text()
    parser.feed(markup)
    parser.close()
    return re.sub(r"\n{3,}", "\n\n", "".join(parser.parts)).strip()


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self.parts.append("\n```\n")
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self.parts.append("\n```\n")
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def tags_of_dump(cell: str) -> tuple[str, ...]:
    """Tags as dumps spell them: `<python><pytorch>` until 2023, `|python|pytorch|` since."""
    return tuple(tag for tag in re.split(r"[<>|]+", html.unescape(cell)) if tag)
