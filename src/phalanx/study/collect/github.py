"""GitHub issues over REST and discussions over GraphQL, resumed and continued by a cursor in the store.

Issues are read in the order of their last change, each request asking for what changed since the last one seen. Page
numbers would skip issues that move to the end while one reads; a time does not. Only where a whole page changed in the
same second is the next page asked for.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from phalanx.study.collect.post import Post, clean
from phalanx.study.collect.presets import Preset
from phalanx.study.collect.store import Store
from phalanx.study.collect.web import Paging, Web
from phalanx.study.errors import StudyError

API = "https://api.github.com"
_PAGE = 100
_DISCUSSIONS = """
query($owner: String!, $name: String!, $after: String, $first: Int!) {
  repository(owner: $owner, name: $name) {
    discussions(first: $first, after: $after, orderBy: {field: UPDATED_AT, direction: ASC}) {
      pageInfo { hasNextPage endCursor }
      nodes { number title body url createdAt updatedAt closedAt author { login } category { name } labels(first: 20) { nodes { name } }
              comments(first: 20) { nodes { body } } } } }
  rateLimit { remaining resetAt } }
"""


def headers_for(token: str | None) -> dict[str, str]:
    """The headers of every request; the token comes from the environment only."""
    headers = {
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "phalanx-study",
    }
    return headers | ({"Authorization": f"Bearer {token}"} if token else {})


def collect_issues(
    web: Web, store: Store, preset: Preset, repository: str, since: str = "", replies: bool = False
) -> None:
    """Read the repository's issues that changed since the last run, or since a time on the first."""
    name = f"github:{repository}:{preset.identity}"
    state = store.cursor(name)
    changed, page = str(state.get("changed") or since), int(str(state.get("page") or 1))
    paging = Paging(f"{web.base}/repos/{repository}/issues")
    while True:
        parameters = {"sort": "updated", "direction": "asc", "per_page": str(_PAGE), "page": str(page)}
        parameters |= _narrowed(preset)
        items = web.get(f"/repos/{repository}/issues", parameters | ({"since": changed} if changed else {})).document
        if not isinstance(items, list):
            raise StudyError(f"{web.base}: the issues of {repository} are no list. Is this GitHub's API?")
        paging.take(items)
        posts = [post for item in items if (post := _issue(item, store, preset, repository)) is not None]
        if replies:
            posts = [_with_replies(web, repository, post) for post in posts]
        last = max((str(item.get("updated_at") or "") for item in items if isinstance(item, dict)), default=changed)
        changed, page = (changed, page + 1) if last <= changed else (last, 1)
        done = len(items) < _PAGE
        store.add_page(posts, name, {"changed": changed, "page": 1 if done else page})
        if done:
            return


def _narrowed(preset: Preset) -> dict[str, str]:
    """What of the query the server can answer: the state, and one label. It would ask for all of several labels."""
    state = {"state": "closed" if preset.settled else "all"}
    return state | ({"labels": preset.labels[0]} if len(preset.labels) == 1 else {})


def collect_discussions(web: Web, store: Store, preset: Preset, repository: str) -> None:
    """Read the repository's discussions behind the cursor of the last run; what changes moves behind it again."""
    name = f"github:{repository}/discussions:{preset.identity}"
    after = store.cursor(name).get("after")
    owner, _, repo = repository.partition("/")
    paging = Paging(f"{web.base}/graphql")
    while True:
        variables = {"owner": owner, "name": repo, "after": after, "first": _PAGE // 2}
        document = _graphql(web, variables)
        found = ((document.get("data") or {}).get("repository") or {}).get("discussions")
        if not isinstance(found, dict):
            raise StudyError(
                f"{repository}: no discussions to be read. Are they switched on there? Is GITHUB_TOKEN set? GraphQL needs one."
            )
        paging.take(found)
        posts = [post for node in found["nodes"] if (post := _discussion(node, store, preset, repository)) is not None]
        after = found["pageInfo"].get("endCursor") or after
        store.add_page(posts, name, {"after": after})
        if not found["pageInfo"].get("hasNextPage"):
            return


def _graphql(web: Web, variables: Mapping[str, object]) -> dict[str, Any]:
    """GraphQL says its limit inside an answer of status 200."""
    document: dict[str, Any] = {}
    for _ in range(3):
        answer = web.post("/graphql", {"query": _DISCUSSIONS, "variables": variables}).document
        if not isinstance(answer, dict):
            raise StudyError(f"{web.base}/graphql: the answer is no object. Is this GitHub's API?")
        document = answer
        errors = document.get("errors") or []
        if not any(isinstance(error, dict) and error.get("type") == "RATE_LIMITED" for error in errors):
            return document
        web.pause(60.0, "GraphQL's rate limit is used up")
    return document


def _issue(item: Any, store: Store, preset: Preset, repository: str) -> Post | None:
    if isinstance(item, dict) and "pull_request" in item:
        store.counts.left_out += 1
        return None
    try:
        number = int(item["number"])
        title, body = clean(item["title"]), clean(item.get("body"))
        post = Post(
            key=f"github:{repository.lower()}#{number}",
            kind="issue",
            place=repository,
            number=number,
            url=clean(item.get("html_url") or f"https://github.com/{repository}/issues/{number}"),
            title=title,
            body=body,
            author=_login(item.get("user")),
            created=str(item["created_at"]),
            updated=str(item.get("updated_at") or item["created_at"]),
            closed=item.get("closed_at"),
            tags=tuple(
                clean(label["name"] if isinstance(label, dict) else label) for label in item.get("labels") or ()
            ),
            replies=(),
            preset=preset.name,
        )
    except (KeyError, TypeError, ValueError) as error:
        store.note(
            f"github:{repository}", f"an issue that lacks what it needs ({type(error).__name__}: {error})", repr(item)
        )
        return None
    if not preset.wants(post, settled=post.closed is not None):
        store.counts.left_out += 1
        return None
    return post


def _discussion(node: Any, store: Store, preset: Preset, repository: str) -> Post | None:
    try:
        number = int(node["number"])
        title, body = clean(node["title"]), clean(node.get("body"))
        labels = [str(label["name"]) for label in (node.get("labels") or {}).get("nodes") or ()]
        category = (node.get("category") or {}).get("name")
        post = Post(
            key=f"github:{repository.lower()}/discussions#{number}",
            kind="discussion",
            place=repository,
            number=number,
            url=str(node["url"]),
            title=title,
            body=body,
            author=_login(node.get("author")),
            created=str(node["createdAt"]),
            updated=str(node.get("updatedAt") or node["createdAt"]),
            closed=node.get("closedAt"),
            tags=tuple(clean(name) for name in ([category] if category else []) + labels),
            replies=tuple(clean(reply.get("body")) for reply in (node.get("comments") or {}).get("nodes") or ()),
            preset=preset.name,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        store.note(
            f"github:{repository}/discussions",
            f"a discussion that lacks what it needs ({type(error).__name__}: {error})",
            repr(node),
        )
        return None
    if not preset.wants(post, settled=post.closed is not None):
        store.counts.left_out += 1
        return None
    return post


def _with_replies(web: Web, repository: str, post: Post) -> Post:
    found: list[str] = []
    page = 1
    paging = Paging(f"{web.base}/repos/{repository}/issues/{post.number}/comments")
    while True:
        parameters = {"per_page": str(_PAGE), "page": str(page)}
        items = web.get(f"/repos/{repository}/issues/{post.number}/comments", parameters).document
        paging.take(items)
        found += [clean(item.get("body")) for item in items or () if isinstance(item, dict)]
        if not items or len(items) < _PAGE:
            break
        page += 1
    return replace(post, replies=tuple(found))


def _login(user: object) -> str | None:
    """The author; None where the account was deleted (GitHub then says null, or `ghost`)."""
    login = user.get("login") if isinstance(user, dict) else None
    return clean(login) if login and login != "ghost" else None
