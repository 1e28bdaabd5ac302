"""How far a secret goes from where it begins: runs of plain characters, values of assignments, credentials of addresses.

Every step looks at a bounded number of bytes or consumes them, so that hiding stays linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Reach = Callable[[bytes, int], int]  # where the secret that begins here ends; -1 if there is none
LOOKED_AT = 96  # bytes of a value that decide whether it looks like a secret
_LONGEST_QUOTED = 4096


def run_of(characters: str, least: int = 0) -> Reach:
    """So many of these characters, or more."""
    run = re.compile(rf"[{characters}]{{{least},}}".encode())

    def reach(data: bytes, at: int) -> int:
        found = run.match(data, at)
        return found.end() if found else -1

    return reach


def looks_random(value: bytes) -> bool:
    """Whether it has a stretch as only keys and tokens have it: letters and digits mixed, or cases mixed at length."""
    for word in re.findall(rb"[A-Za-z0-9]{8,}", value[:LOOKED_AT]):
        digits = len(re.findall(rb"[0-9]", word))
        if 2 <= digits < len(word) - 1 and len(re.findall(rb"[0-9]+", word)) >= 2:
            return True
        if len(word) >= 20 and len(re.findall(rb"[a-z][A-Z]", word)) >= 3:
            return True
    joined = re.sub(rb"[_=~-]", b"", found[0]) if (found := _JOINED.match(value[:LOOKED_AT])) else b""
    kinds = re.findall(rb"[a-z]+|[A-Z]+|[0-9]+", joined)
    return len(joined) >= 20 and len(kinds) > max(6, len(joined) // 4) and kinds[0] != joined


_JOINED = re.compile(rb"[A-Za-z0-9_=~-]{20,}")
# Words and placeholders that stand where a secret would: None, <token>, ${TOKEN}, $TOKEN, %s, {token!r}, (…, [REDACTED].
_HARMLESS = re.compile(
    rb"(?i:none|null|nil|true|false|yes|no|unset|empty|undefined|required|optional|missing|invalid|str|string|bytes|bool|u?int\d{0,2}|b?float\d{0,2}|dict|list|\*+|\.{2,}|x{3,})(?![A-Za-z0-9])"
    rb"|\[redacted\]|[<(]|\[[A-Z]"
    rb"|\$(?:[({]|[A-Z_][A-Z0-9_]*(?![A-Za-z0-9])|[a-z_]+(?![A-Za-z0-9]))"
    rb"|%(?:[-+ #0-9.]{0,6}[a-z](?![A-Za-z0-9])|[({ ]|[A-Za-z_]+%)"
    rb"|\{(?:[\s\"'{}\\]|\w{0,40}(?:[!:.\[][^{}\s]{0,20})?\}|\w[\w.]{0,60}[:=(])"
)
_NUMBER = re.compile(
    rb"(?![0-9]{15})[-+]?[0-9][0-9,._]*(?:[eE][-+]?[0-9]+)?[%A-Za-z]{0,2}(?![A-Za-z0-9]|[-_|:@#~=%][A-Za-z0-9])"
)
_CALL = re.compile(rb"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)[(\[](?:[bru]{0,2}[\"'])?")
_MEMBER = re.compile(rb"(?:self|args|os|cfg|config|opt|opts|settings|env)\.\w")
# What ends a command or a pair of a query ends a value; within a password it is followed by anything else.
_BARE = re.compile(rb"(?:[^\s\"'`;&<>\x1b]|[;&](?![\w.% -]{1,40}[=:]|\s|$|&|amp;))+")


def _is_code(data: bytes, at: int) -> bool:
    """A call, an index or an attribute instead of a value; a password may hold brackets, and a call may be given one."""
    head = data[at : at + LOOKED_AT]
    called = None if data[at - 1 : at] in (b'"', b"'") else _CALL.match(head)
    if called is None:
        return _MEMBER.match(head) is not None
    if looks_random(called[1]):
        return False
    is_quoted = called[0][-1:] in (b'"', b"'")
    return not (is_quoted and looks_random(head[called.end() :].partition(called[0][-1:])[0]))


def _value(data: bytes, at: int) -> int:
    """The end of a value that begins here, -1 for none; blanks belong to it if it stands in quotes."""
    if at and data[at - 1] in b"\"'`":
        end = _closing_quote(data, at)
        if end >= 0:
            return end
    found = _BARE.match(data, at)
    if found is None:
        return -1
    end = found.end()
    while end > at and data[end - 1] in b",)]}\\.:":
        end -= 1
    return end


def _closing_quote(data: bytes, at: int) -> int:
    """Where the text ends whose opening quote stands before `at`; one that is escaped more often than that stands within it."""
    mark, depth = data[at - 1 : at], _escapes(data, at - 1)
    line = data.find(b"\n", at, at + _LONGEST_QUOTED)
    stop = line if line >= 0 else min(len(data), at + _LONGEST_QUOTED)
    end = data.find(mark, at, stop)
    while end >= 0 and _escapes(data, end) > depth:
        end = data.find(mark, end + 1, stop)
    return end - _escapes(data, end) if end >= 0 else -1


def _escapes(data: bytes, at: int) -> int:
    """How many backslashes stand before this place; more than eight are as good as eight."""
    count = 0
    while count < 8 and at - count > 0 and data[at - count - 1] == 0x5C:
        count += 1
    return count


def value(least: int, test: Callable[[bytes], bool] | None = None, numbers: bool = False) -> Reach:
    """The value of an assignment, if it is that long, passes the test, and is neither a plain word such as `None` nor code."""

    def reach(data: bytes, at: int) -> int:
        head = data[at : at + LOOKED_AT]
        if _HARMLESS.match(head) or _is_code(data, at) or (not numbers and _NUMBER.match(head)):
            return -1
        if test is not None and not test(head):
            return -1
        called = _CALL.match(head)
        if called is not None and called[0][-1:] in (b'"', b"'"):
            at += called.end()  # a call that is given the secret
        end = _value(data, at)
        is_quoted = numbers and data[at - 1 : at] in (b'"', b"'")
        return end if end - at >= (1 if is_quoted else least) else -1

    return reach


def first_word(data: bytes) -> bytes:
    """Up to a blank or a quote; of a call with a text, the text."""
    called = _CALL.match(data)
    if called is not None and called[0][-1:] in (b'"', b"'"):
        data = data[called.end() :]
    found = _BARE.match(data)
    return found[0] if found else b""


def random_word(head: bytes) -> bool:
    return looks_random(first_word(head))


def not_hexadecimal(head: bytes) -> bool:
    word = first_word(head)
    return looks_random(word) and re.fullmatch(rb"(?:0x)?[0-9a-fA-F:-]+", word) is None


_CELL = re.compile(rb"[^\s|]{4,}[ \t]*(?:[|\r\n]|\xe2\x94[\x82\x83]|$)")
_LINE = re.compile(rb"[^\s:={\[][^\s]{3,}(?<!:),?[ \t]*[}\])]*(?:[\r\n]|$)")
_LAST = re.compile(rb"[^\"'\r\n]{1,90}[\"'][ \t]*[)\]]")
_NAME_BEHIND = re.compile(
    rb"[\"'],\s{0,40}[\"'](?:name|key)[\"'][ \t]{0,4}:[ \t]{0,4}[\"'][\w.-]{0,40}(?:pass(?:w|phrase|[\"'])|secret|credential|api_?key|token|_(?:key|pwd|pat)[\"'])",
    re.I,
)


def alone_in_cell(head: bytes) -> bool:
    """Whether one word fills the cell of a table."""
    return _CELL.match(head) is not None


def alone_in_line(head: bytes) -> bool:
    """Whether one word fills the line, and names nothing that follows it."""
    return _LINE.match(head) is not None


def last_of_pair(head: bytes) -> bool:
    """Whether a bracket closes behind the text: a name and its value, no longer list of names."""
    return _LAST.match(head) is not None


def value_before_name(data: bytes, at: int) -> int:
    """A quoted value whose secret name follows it."""
    end = _value(data, at)
    return end if end > at and _NAME_BEHIND.match(data, end) else -1


# Between a name and a value that nothing assigns to it: "(str): ", "is ", "| `", "......", `, default='`, the next line.
_BETWEEN = re.compile(
    rb"(?:\[\w{0,20}\])?(?:(?:[^\w\r\n\x1b]|\x1b\[[0-9;]{0,12}m){1,12}(?:is|was|str|string|value|default|provided|given|eof|set|to|as|key|token)(?!\w)){0,3}"
    rb"(?:[^\w\r\n\x1b]|\x1b\[[0-9;]{0,12}m){0,40}(?:\r?\n[ \t]{0,40}(?:- )?[\"'`]?)?",
    re.I,
)
_REST_OF_NAME = re.compile(rb"[\w.-]{0,40}")


def beside_name(data: bytes, at: int) -> int:
    """Where the value begins of a name that ends here, or a little later."""
    rest = _REST_OF_NAME.match(data, at)
    if rest is None or looks_random(rest[0]):  # a token that holds such a word
        return -1
    found = _BETWEEN.match(data, rest.end())
    return found.end() if found else -1


def beside_word(data: bytes, at: int) -> int:
    """The same of a word such as `token`, which also begins `tokenizer`; -1 where it goes on."""
    found = _BETWEEN.match(data, at)
    return found.end() if found and found.end() > at else -1


_COMPARED = re.compile(rb"[\"'][ ]{1,4}(?:[!=]=|in|is)[ ]{1,4}[\w.]{0,60}(?:passw|secret|credential|token|key)", re.I)


def value_compared(data: bytes, at: int) -> int:
    """A quoted value that is compared with a secret name, as pytest prints it."""
    end = _value(data, at)
    return end if end > at and _COMPARED.match(data, end) else -1


_USER_INFO = re.compile(rb"[^\s/\"'<>`]{1,300}@|[^\s\"'<>@/:`]{0,100}:(?!\d{1,5}/)[^\s\"'<>@`]{1,200}@")


def user_info(data: bytes, at: int) -> int:
    """Name and password of an address; a name alone only where it looks like a key."""
    found = _USER_INFO.match(data, at)
    if found is None:
        return -1
    text = found[0][:-1]
    is_secret = b":" in text or looks_random(text) or len(text) >= 24
    return found.end() - 1 if is_secret and b"[redacted]" not in text else -1


_END_OF_KEY = re.compile(rb"-----END[^\r\n-]{0,60}-----|Private-MAC:[^\r\n]*")


def private_key(data: bytes, at: int) -> int:
    """To the line that ends the key; a key that was cut off goes on to the end of the text."""
    found = _END_OF_KEY.search(data, at)
    return found.end() if found else len(data)


def ends_key(line: bytes) -> bool:
    """Whether a private key ends in this line."""
    return _END_OF_KEY.search(line) is not None


def begins_within_key(text: bytes) -> bool:
    """Whether a private key ends in this text that does not begin in it."""
    end = text.find(b"PRIVATE KEY-----")
    return end >= 0 and text.rfind(b"-----END", 0, end) > text.rfind(b"-----BEGIN", 0, end)
