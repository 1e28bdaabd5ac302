"""Finds posts that say the same, within a source and across sources: cross-posts, bot copies, re-opened issues.

Two posts are the same if one links to the other and they share words, or if most of their words in fives are the
same. Each text is reduced to its smallest hashes (a bottom-k sketch), so that any number of posts is compared with few.
"""

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from phalanx.study.collect.post import Post

_WORDS = 5
_SKETCH = 64
_BUCKETS = 8  # posts that share none of these many smallest hashes are not compared
_FEWEST_WORDS = 25  # shorter texts are alike by chance
_ALIKE = 0.5
_LINKED = 0.15
_LINK = re.compile(
    r"github\.com/([\w.-]+/[\w.-]+)/(issues|discussions)/(\d+)|(stackoverflow)\.com/(?:q|questions)/(\d+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What is kept of a post to compare others with."""

    key: str
    created: str
    sketch: tuple[int, ...]
    links: frozenset[str]


def find_duplicates(posts: Iterable[Post]) -> dict[str, str]:
    """For each post that repeats another: the key of the earliest one of its group."""
    seen = [_look_at(post) for post in posts]
    by_key = {one.key: one for one in seen}
    parent = {one.key: one.key for one in seen}

    def root(key: str) -> str:
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for first, second in _candidates(seen, by_key):
        linked = second.key in first.links or first.key in second.links
        if _similarity(first.sketch, second.sketch) >= (_LINKED if linked else _ALIKE):
            older, newer = sorted(
                (by_key[root(first.key)], by_key[root(second.key)]), key=lambda one: (one.created, one.key)
            )
            parent[newer.key] = older.key
    return {key: root(key) for key in parent if root(key) != key}


def _look_at(post: Post) -> Seen:
    words = re.findall(r"\w+", f"{post.title} {post.body}".lower())
    hashes: set[int] = set()
    if len(words) >= _FEWEST_WORDS:
        hashes = {
            zlib.crc32(" ".join(words[start : start + _WORDS]).encode()) for start in range(len(words) - _WORDS + 1)
        }
    return Seen(post.key, post.created, tuple(sorted(hashes)[:_SKETCH]), frozenset(_links(post.body)))


def _links(body: str) -> Iterable[str]:
    for match in _LINK.finditer(body):
        if match[4]:
            yield f"stackoverflow:{match[5]}"
        else:
            part = "" if match[2].lower() == "issues" else "/discussions"
            yield f"github:{match[1].lower()}{part}#{match[3]}"


def _candidates(seen: list[Seen], by_key: dict[str, Seen]) -> Iterable[tuple[Seen, Seen]]:
    buckets: dict[int, list[Seen]] = {}
    for one in seen:
        for value in one.sketch[:_BUCKETS]:
            # A hash that very many share is a form's fixed text: it tells nobody apart.
            group = buckets.setdefault(value, [])
            for other in group[:200]:
                yield other, one
            group.append(one)
        for link in one.links:
            if link in by_key and link != one.key:
                yield by_key[link], one


def _similarity(first: tuple[int, ...], second: tuple[int, ...]) -> float:
    """The share of common word groups, estimated from the smallest hashes of both."""
    if not first or not second:
        return 0.0
    union = sorted(set(first) | set(second))[:_SKETCH]
    common = set(first) & set(second)
    return sum(value in common for value in union) / len(union)
