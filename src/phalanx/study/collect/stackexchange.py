"""Questions of a Stack Exchange site over its API, resumed and continued by a cursor in the store.

As on GitHub, what was active since the last question seen is asked for, not page numbers: a question that becomes
active while one reads moves to the end, and is read again there.
"""

import html
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from phalanx.study.collect.post import Post, clean, text_of_html
from phalanx.study.collect.presets import Preset
from phalanx.study.collect.store import Store
from phalanx.study.collect.web import Paging, Web
from phalanx.study.errors import StudyError

API = "https://api.stackexchange.com/2.3"
_PAGE = 100
_ADDRESSES = {
    "stackoverflow": "https://stackoverflow.com",
    "superuser": "https://superuser.com",
    "serverfault": "https://serverfault.com",
}


def address_of(site: str) -> str:
    """A site's own address, for links."""
    return _ADDRESSES.get(site, f"https://{site}.stackexchange.com")


def collect_questions(
    web: Web, store: Store, preset: Preset, since: str = "", key: str | None = None, replies: bool = False
) -> None:
    """Read the site's questions with the preset's tags, one tag after another: a question with two is kept once."""
    for tag in preset.tags or ("",):
        _collect_tag(web, store, preset, tag, since, key, replies)


def _collect_tag(web: Web, store: Store, preset: Preset, tag: str, since: str, key: str | None, replies: bool) -> None:
    name = f"{preset.site}:{tag}:{preset.identity}"
    state = store.cursor(name)
    start = int(datetime.fromisoformat(since).timestamp()) if since else 0
    active, page = int(str(state.get("active") or start)), int(str(state.get("page") or 1))
    paging = Paging(f"{web.base}/questions")
    while True:
        parameters = {"site": preset.site, "sort": "activity", "order": "asc", "min": str(active), "page": str(page), "pagesize": str(_PAGE), "filter": "withbody"}  # fmt: skip
        parameters |= ({"tagged": tag} if tag else {}) | ({"key": key} if key else {})
        document = _ask(web, "/questions", parameters)
        items = document["items"]
        paging.take(items)
        posts = [post for item in items if (post := _question(item, store, preset)) is not None]
        if replies and posts:
            posts = _with_answers(web, preset, posts, key)
        last = max(
            (int(item.get("last_activity_date") or 0) for item in items if isinstance(item, dict)), default=active
        )
        active, page = (active, page + 1) if last <= active else (last, 1)
        done = not document.get("has_more") or not items
        store.add_page(posts, name, {"active": active, "page": 1 if done else page})
        if done:
            return


def _ask(web: Web, path: str, parameters: dict[str, str]) -> dict[str, Any]:
    document = web.get(path, parameters).document
    if not isinstance(document, dict) or not isinstance(document.get("items"), list):
        raise StudyError(f"{web.base}{path}: the answer holds no items. Is this Stack Exchange's API?")
    if document.get("backoff"):
        web.pause(float(document["backoff"]), "Stack Exchange asks to slow down")
    if document.get("quota_remaining") == 0 and document.get("has_more"):
        raise StudyError(
            "Stack Exchange's daily quota is used up. What was collected is kept: go on tomorrow, or set STACKEXCHANGE_KEY."
        )
    return document


def _question(item: Any, store: Store, preset: Preset) -> Post | None:
    try:
        number = int(item["question_id"])
        title, body = clean(html.unescape(item["title"])), clean(text_of_html(item.get("body") or ""))
        owner = item.get("owner") or {}
        active = item.get("last_edit_date") or item.get("last_activity_date") or item["creation_date"]
        post = Post(
            key=f"{preset.site}:{number}",
            kind="question",
            place=preset.site,
            number=number,
            url=f"{address_of(preset.site)}/questions/{number}",
            title=title,
            body=body,
            author=clean(html.unescape(owner["display_name"]))
            if owner.get("user_type", "does_not_exist") != "does_not_exist"
            else None,
            created=_iso(item["creation_date"]),
            updated=_iso(max(active, item.get("last_activity_date") or 0)),
            closed=_iso(item["closed_date"]) if item.get("closed_date") else None,
            tags=tuple(clean(tag) for tag in item.get("tags") or ()),
            replies=(),
            preset=preset.name,
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        store.note(preset.site, f"a question that lacks what it needs ({type(error).__name__}: {error})", repr(item))
        return None
    if not preset.wants(post, settled=item.get("accepted_answer_id") is not None):
        store.counts.left_out += 1
        return None
    return post


def _with_answers(web: Web, preset: Preset, posts: list[Post], key: str | None) -> list[Post]:
    """The answers of a page of questions, best first, in as few requests as the API allows."""
    answers: dict[int, list[str]] = {}
    numbers = ";".join(str(post.number) for post in posts)
    page = 1
    paging = Paging(f"{web.base}/questions/…/answers")
    while True:
        parameters = {
            "site": preset.site,
            "sort": "votes",
            "order": "desc",
            "page": str(page),
            "pagesize": str(_PAGE),
            "filter": "withbody",
        }
        document = _ask(web, f"/questions/{numbers}/answers", parameters | ({"key": key} if key else {}))
        paging.take(document["items"])
        for item in document["items"]:
            if isinstance(item, dict) and "question_id" in item:
                answers.setdefault(int(item["question_id"]), []).append(clean(text_of_html(item.get("body") or "")))
        if not document.get("has_more"):
            break
        page += 1
    return [replace(post, replies=tuple(answers.get(post.number, ()))) for post in posts]


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
