"""Reads the time a log line bears, in the usual forms. Clocks of hosts differ: times only ever break ties.

2024-01-02 10:00:00,123    [2024-01-02T10:00:00.5Z]    2024-01-02_10:00:00    E0102 10:00:00.123456
Jan  2 10:00:00            I0000 00:00:1704189600.123456
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_SCOPE = 120
_FULL = re.compile(
    r"(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T _](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?:[.,](?P<fraction>\d{1,9}))?\s?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_GLOG = re.compile(
    r"\b[IWEFC](?P<month>\d\d)(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?"
)
_EPOCH = re.compile(r"\b[IWEF]0000 00:00:(?P<seconds>\d{9,11}\.\d+)")
_EPOCH_HINT = "0000 00:00:"  # asked first: few logs have it
_SYSLOG = re.compile(r"^\W*(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(?P<day>\d\d?) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)")  # fmt: skip
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_SOME_YEAR = 1972  # forms without a year are only compared with one another; a leap year, for 29 February


def time_of(line: str) -> float | None:
    """Seconds since 1970 that the line bears near its beginning; None if it bears none or an impossible one."""
    head = line[:_SCOPE]
    if _EPOCH_HINT in head and (match := _EPOCH.search(head)):
        return float(match["seconds"])
    match = _FULL.search(head) or _GLOG.search(head) or _SYSLOG.search(head)
    if match is None:
        return None
    parts = match.groupdict()
    month = _MONTHS.index(parts["name"]) + 1 if parts.get("name") else int(parts["month"] or 0)
    fraction = float(f"0.{parts.get('fraction') or 0}")
    try:
        moment = datetime(
            int(parts.get("year") or _SOME_YEAR),
            month,
            int(parts["day"]),
            int(parts["hour"]),
            int(parts["minute"]),
            int(parts["second"]),
            tzinfo=_zone(parts.get("zone")),
        )
    except ValueError:
        return None
    return moment.timestamp() + fraction


def _zone(text: str | None) -> timezone:
    """Lines without a zone are taken to be in one and the same."""
    if not text or text == "Z":
        return UTC
    sign = -1 if text[0] == "-" else 1
    digits = text[1:].replace(":", "")
    return timezone(sign * timedelta(hours=int(digits[:2]) % 24, minutes=int(digits[2:]) % 60))
