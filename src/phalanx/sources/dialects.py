"""Tells which rank wrote a line, by the prefixes that launchers and libraries put before it.

[rank3]: Traceback …                      PyTorch's exception hook
[default3]:step 10                        torchrun --tee
[1,3]<stderr>:Traceback …                 mpirun --tag-output, horovodrun
3: loading …                              srun --label (only where most lines have it)
(RayTrainWorker pid=812, ip=10.0.0.5) …   Ray
[pod/job-worker-3/pytorch] …              kubectl logs --prefix
worker-3  | …                             docker compose
node0:812:901 [3] NCCL INFO …             NCCL: process 812 drives device 3
[r3] step 10 …, 3 | step 10 …             scripts' own prefixes (only where most lines have one)
{"rank": 3, "step": 10, …                  a line of JSON
2024-01-02T10:00:00.5Z stderr F …         any of these in what a container runtime collected
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from phalanx.sources.labels import Labels


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who wrote a line. `key` tells speakers apart even where the rank is not known."""

    rank: int | None = None
    host: str | None = None
    pid: int | None = None
    key: str = ""


class _Told(NamedTuple):
    """What was found out so far of who wrote a line."""

    rank: int | None = None
    host: str | None = None
    pid: int | None = None
    key: str = ""
    is_certain: bool = False  # the process itself put its global rank before the line


_speaker = lru_cache(maxsize=4096)(Speaker)  # the same few speak on all lines


@dataclass(frozen=True, slots=True)
class _Form:
    name: str
    pattern: re.Pattern[str]
    is_weak: bool = False  # too general to be believed on a single line


_TIME = r"(?:\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?\s+|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?=\[)|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\]?\s*)?"
_FORMS = (
    _Form("torch", re.compile(r"\[rank(?P<rank>\d+)\]:?\s?", re.I)),
    _Form("mpi", re.compile(r"\[(?:[^\]\s]*?(?:[@,]|mpirank:))?(?P<rank>\d+)(?:,algo-\d+)?\](?:\[\w[^\]]*\])?<std(?:out|err|diag)>:?\s?")),
    _Form("ray", re.compile(r"\((?P<key>[\w.:<>]+ pid=(?P<pid>\d+)(?:, ip=(?P<host>[\d.a-f:]+))?)\)\s?")),
    _Form("kubectl", re.compile(r"\[pod/(?P<host>[\w.-]*?(?:(?P<role>master|worker|chief|ps|launcher|node)-)?(?P<index>\d+)(?:-\w{5})?)/[\w.-]+\]\s?")),
    _Form("compose", re.compile(r"(?P<host>[\w.-]*?(?:worker|rank|node|trainer|master|chief|ps)[-_]?(?P<index>\d+)(?:[-_]\d+)?)\s*\|\s?"), is_weak=True),
    _Form("tee", re.compile(r"\[(?:default|trainer|worker|local_rank_?)(?P<rank>\d+)\]:?\s?")),
    _Form("srun", re.compile(r"\s{0,5}(?P<rank>\d{1,5}): ?"), is_weak=True),
    _Form("bracket", re.compile(r"\[(?P<rank>\d{1,4})\]:?\s"), is_weak=True),
    _Form("column", re.compile(r"\(?(?P<rank>\d{1,4})(?:\)|\s*\|)\s"), is_weak=True),
    _Form("short", re.compile(r"[\[(<]?[rRwWpP](?P<rank>\d{1,4})[\])>]?\s?[:|]?\s"), is_weak=True),
    _Form("named", re.compile(r"[\[(<]?(?:(?:global[ _])?[rR]ank|RANK|[pP]roc(?:ess)?|GPU|gpu)[ =_-]?(?P<rank>\d{1,4})(?:[\])>]\s?[:|]?|\s?[:|])\s"), is_weak=True),
    _Form("host", re.compile(r"(?P<host>[a-zA-Z][\w.-]*\d[\w.-]*): "), is_weak=True),
)  # fmt: skip
_ONE_CONTAINER = _Form("container", re.compile(r"(?P<host>[\w.-]+?)\s*\|\s?"), is_weak=True)
_LEADING_TIME = re.compile(_TIME)
# What these can begin with, asked first: most lines begin with nothing of it.
_TIME_OPENS, _COLLECTED_OPENS = frozenset("[0123456789MTWFS"), frozenset(">`0123456789")
# What a report quotes with, and what collectors of containers' output put before each line: `kubectl logs --timestamps`, `docker logs -t`, the kubelet's own files.
_COLLECTED = re.compile(
    r"[>`] ?(?=\[)|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d)(?: std(?:out|err) [FP](?= |$)|:)?[ \t]?"
)
# Ranks that a line tells of its own writer further inside. Bare "rank 3" is not among them: it may name a peer.
_INSIDE_ANYWHERE = (
    r"[\[(<|]\s*(?:global[ _])?rank\s*[:=]?\s*(?P<a>\d+)\s*[\])>,|]"
    r"|[{,]\s*\"(?:global_|world_)?rank\"\s*:\s*\"?(?P<d>\d+)\b"
    r"|(?<![\w.])(?:global_)?rank=(?P<e>\d+)\b(?=.{0,80}\b(?:step|epoch|iter|loss|batch)\b)"
)
_INSIDE_AT_FIRST = (
    r"^\s*(?:\[[^\]]{1,40}\]\s*)?(?:\w+[- ]){0,2}rank[ :=_#]*(?P<b>\d+)\s*(?:[:|\]),/-]|(?=\b(?:step|epoch|iter|loss|batch)\b))"
    r"|^\s*(?:worker|process|proc|trainer)[ :=_#]*(?P<c>\d+)\s*[:|\])]\s(?!\S*python)"  # `Process 4242: python train.py` is py-spy's
    r"|^\s*[\[(<]?(?:worker|process|proc|trainer|replica|task)[ :=_#-]*(?P<f>\d+)(?:\s?(?:/|of)\s?\d+)?\s?[\])>:|,]?\s+(?=(?:step|epoch|iter|loss|batch)\b)"
)
_INSIDE = re.compile(f"{_INSIDE_ANYWHERE}|{_INSIDE_AT_FIRST}", re.I)
# The same for text in lower case: expressions that ignore case are slow, and what stands first need not be tried at every character.
_INSIDE_LOW, _INSIDE_LOW_LATER = re.compile(_INSIDE.pattern), re.compile(_INSIDE_ANYWHERE)
# What loggers put before the words of a script: `INFO:root:`, ` | INFO     | __main__:main:15 - `, ` - trainer - INFO - `, `[INFO] `, `INFO trainer.loop: `.
_HEAD_LOW = re.compile(
    r"[\s|:\[-]*(?:[\w.]{1,40}\s*[|:-]\s*)?(?:info|debug|warn(?:ing)?|error|critical|success)\b\]?\s*(?:\[[^\]]{1,40}\]\s*)?[|:-]*\s*"
    r"(?:[\w.<>:/-]{1,60}?(?:\s*[|-]\s+|:\s*))?(?=(?:global[ _])?rank|worker|proc|trainer)"
)
_INSIDE_SCOPE = 160
_BAR_END = 48  # characters: "?it/s, loss=2.31"
_RATE = re.compile(r"it/s|s/it")
# `[PG ID 5 … Rank 1]`: a rank within a group that is not the job's.
_OF_SMALL_GROUP = re.compile(r"\[pg (?:id )?[1-9]\d*\b[^\]]{0,120} rank \d+\]")
_MASTER = re.compile(r"\[pod/[\w.-]*?(?:master|chief)-\d")
_NCCL = re.compile(r"^(?P<host>[\w.-]+):(?P<pid>\d+):\d+ \[(?P<device>\d+)\] ")
_NCCL_CLOSES = "] "
_STRONG = tuple(form for form in _FORMS if not form.is_weak)
_WEAK = tuple(form for form in _FORMS if form.is_weak)
_OPENINGS = ("[", "(")
_ENOUGH = 0.6
_NUMBERINGS = ("srun", "column")
_OWN_WORDS = ("short", "named", "column")
_OF_NODES = ("srun", "kubectl", "compose")  # their numbers are nodes where one of them holds several ranks


@dataclass(slots=True)
class Dialect:
    """How one file marks its ranks. Learns which process is which rank as lines tell."""

    forms: tuple[_Form, ...] = _STRONG
    file_rank: int | None = None
    has_master: bool = False
    first_index: int = 0  # what containers count from
    ranks_by_pid: dict[int, int] = field(default_factory=dict)
    labels: Labels = field(default_factory=Labels)

    def read(self, line: str) -> tuple[Speaker, str]:
        """The speaker of a line and the line without the prefix."""
        bar = line.find("][rank")
        if bar > 0 and _RATE.search(line, max(0, bar - _BAR_END), bar):
            line = line[bar + 1 :]  # a progress bar ends without a new line, and another rank's words follow it
        stamp = _COLLECTED.match(line) if line[:1] in _COLLECTED_OPENS else None
        told, rest, body = self._prefixes(line[stamp.end() :] if stamp else line)
        if told.is_certain and told.pid is not None and told.rank is not None:
            self.ranks_by_pid[told.pid] = told.rank
        nccl = _NCCL.match(rest) if _NCCL_CLOSES in rest else None
        if nccl is not None:
            told = self._of_nccl(told, nccl)
        elif not told.is_certain:
            told = self._told_inside(told, body[:_INSIDE_SCOPE])
        rank, host, pid, key, _ = told
        if rank is None and pid is not None:
            rank = self._rank_of_process(pid)
        return _speaker(rank, host, pid, key or (f"rank{rank}" if rank is not None else "")), rest

    def _prefixes(self, rest: str) -> tuple[_Told, str, str]:
        """What the prefixes of a line tell; the line without them, and without a time before its words."""
        told, body = _Told(self.file_rank), _after_time(rest)
        for _ in range(3):  # prefixes nest: srun's before torch's, a time before both
            prefix = self._prefix_of(body)
            if prefix is None:
                break
            name, found = prefix
            groups = found.groupdict()
            number = self._rank_of(name, groups)
            is_certain = name == "torch" if number is not None else told.is_certain
            told = _Told(
                told.rank if number is None else number,
                groups.get("host") or told.host,
                int(groups["pid"]) if groups.get("pid") else told.pid,
                found[0].strip() if number is not None or not told.is_certain else told.key,
                is_certain,
            )
            rest = body[found.end() :]
            body = _after_time(rest)
        return told, rest, body

    def _of_nccl(self, told: _Told, nccl: re.Match[str]) -> _Told:
        """With what NCCL's own prefix tells: the process, and the device that it drives."""
        rank, pid = told.rank, int(nccl["pid"])
        if rank is None:
            rank = self._rank_of_process(pid)
            rank = self._rank_of_device(int(nccl["device"])) if rank is None else rank
        return _Told(rank, told.host or nccl["host"], pid, told.key or f"{nccl['host']}:{nccl['pid']}")

    def _told_inside(self, told: _Told, scope: str) -> _Told:
        """With the rank that the words of the line name as their writer's."""
        low = scope.lower()
        if not ("rank" in low or "worker" in low or "proc" in low or "trainer" in low):
            return told
        is_nccl = self.labels.within_groups and ("processgroupnccl" in low or "watchdog" in low)
        # the last line of a traceback, whose other lines do not say whose they are
        if is_nccl or "original reason for failure" in low or _OF_SMALL_GROUP.search(low):
            return told
        inside = rank_inside(scope, low)
        if inside is None or not (told.rank is None or inside["a"]):
            return told
        named = int(next(value for value in inside.groups() if value is not None))
        rank = named if told.rank is None or self.file_rank is None else told.rank
        return told._replace(rank=rank, key=told.key or f"rank{named}")

    def _rank_of(self, name: str, groups: dict[str, str | None]) -> int | None:
        """The global rank that a prefix stands for, if it stands for one."""
        number = groups.get("rank") or groups.get("index")
        if number is None or (self.labels.of_nodes and name in _OF_NODES):
            return None
        if name == "tee":
            return int(number) + (self.labels.offset or 0)
        shift = self.has_master and groups.get("role") == "worker"  # master-0 is rank 0, worker-0 rank 1
        first = 0 if groups.get("rank") else self.first_index
        return max(int(number) + shift - first, 0)

    def _rank_of_process(self, pid: int) -> int | None:
        return self.ranks_by_pid.get(pid, self.labels.ranks_by_pid.get(pid))

    def _rank_of_device(self, device: int) -> int | None:
        """The rank that uses a device, if its node's ranks are known to count on from there."""
        if self.labels.offset is not None:
            return device + self.labels.offset
        return None if self.labels.of_nodes or self.labels.several_hosts else device

    def _prefix_of(self, body: str) -> tuple[str, re.Match[str]] | None:
        """The prefix that a line begins with, and its form: the first that fits."""
        # Strong prefixes all open with a bracket; most lines do not.
        if self.forms is _STRONG and not body.startswith(_OPENINGS):
            return None
        for form in self.forms:
            if (match := form.pattern.match(body)) is not None:
                return form.name, match
        return None


def sniff(lines: Iterable[str], file_rank: int | None) -> Dialect:
    """Decide from a sample which weak prefixes this file really uses."""
    sample = [line for line in lines if line.strip()]
    bodies = [_after_time(line) for line in sample]
    forms, first_index = _STRONG, 0
    for form in _WEAK:
        # what names ranks in words behind a time is understood as it stands, with the time
        matches = _matches_of(form, sample if form.name == "named" else bodies)
        if len(matches) < 3 or len(matches) < _ENOUGH * len(sample):
            continue
        values = {match.groupdict().get("rank") or match.groupdict().get("host") for match in matches}
        if form.name == "compose":
            indices = {int(match["index"]) for match in matches}
            counts_from_one = indices == set(range(1, len(indices) + 1))
            if len(values) == 1 or (min(indices) == 1 and not counts_from_one):
                form = _ONE_CONTAINER  # in which all ranks may be; or nobody knows what they are counted from
            first_index = int(counts_from_one)
        if form.name in _NUMBERINGS and len(values) > max(2, len(matches) // 2):
            continue  # numbered lines (an editor's, a listing's), not labels
        if form.name in _OWN_WORDS and values != {str(rank) for rank in range(len(values))}:
            continue  # ranks count from 0 without a gap, whatever the script's own prefix is
        forms = (*_STRONG, form)
        break
    has_master = any("[pod/" in line and _MASTER.search(line) for line in sample)
    return Dialect(forms, file_rank, has_master, first_index)


def rank_inside(scope: str, low: str) -> re.Match[str] | None:
    """Where a line, given as it is and in lower case, tells the rank of its writer."""
    if not scope.isascii():
        return _INSIDE.search(scope)
    told = _INSIDE_LOW.match(low) or _INSIDE_LOW_LATER.search(low, 1)
    if told is None and (head := _HEAD_LOW.match(low)) is not None:
        return _INSIDE_LOW.match(low[head.end() :])
    return told


def _matches_of(form: _Form, bodies: Sequence[str]) -> list[re.Match[str]]:
    """What of a sample has this prefix; only the first of it, where too much has not."""
    matches: list[re.Match[str]] = []
    for number, body in enumerate(bodies, 1):
        if (match := form.pattern.match(body)) is not None:
            matches.append(match)
        elif number - len(matches) > (1 - _ENOUGH) * len(bodies) + 1:
            break
    return matches


def _after_time(line: str) -> str:
    if line[:1] not in _TIME_OPENS:
        return line
    stamp = _LEADING_TIME.match(line)
    return line[stamp.end() :] if stamp else line
