"""Takes secrets out of text before it is kept: keys, tokens, passwords, credentials in addresses."""

from __future__ import annotations

import re

HIDDEN = "[redacted]"
_WHOLE = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"  # AWS key ids
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}\b|\bgithub_pat_\w{30,}\b"
    r"|\bhf_[A-Za-z0-9]{20,}\b"
    r"|\bglpat-[\w-]{20,}\b"
    r"|\bxox[abprs]-[\w-]{10,}\b"
    r"|\bsk-[A-Za-z0-9_-]{20,}\b"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}"  # JSON web tokens
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*"
)
_ASSIGNED = re.compile(
    r"(?i)\b([\w.-]*(?:password|passwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|private[_-]?key|_token|credential)[\w.-]*"
    r"[\"']?\s*(?:=|:)\s*[\"']?)(?!None\b|null\b|\[redacted\])([^\s\"',;]{6,})"
)
_BEARER = re.compile(r"(?i)\b((?:bearer|basic)\s+)[A-Za-z0-9+/._~=-]{12,}")
_IN_ADDRESS = re.compile(r"(\w+://)[^\s/:@]+:[^\s/@]+@")
_HINTS = (
    "key", "pass", "token", "secret", "://", "basic", "bearer", "credential", "begin", "sk-", "eyj", "hf_", "xox", "akia", "asia",
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat",
)  # fmt: skip


def redact(text: str) -> str:
    """The text without secrets; unchanged, and quickly so, if it holds none."""
    low = text.lower()
    if not any(hint in low for hint in _HINTS):
        return text
    text = _WHOLE.sub(HIDDEN, text)
    text = _ASSIGNED.sub(lambda match: match[1] + HIDDEN, text)
    text = _BEARER.sub(lambda match: match[1] + HIDDEN, text)
    return _IN_ADDRESS.sub(lambda match: match[1] + HIDDEN + "@", text)
