"""The watch inside a rank: a thread that keeps a small record of how far the collectives came, and dumps when asked.

The record is one page, mapped from a file in the bundle; the supervisor reads it and writes one number into it, the
request. PyTorch's C++ flight recorder counts the collectives anyway (DDP's and FSDP's too): reading its counters costs
about ten microseconds, and nothing is hooked or wrapped. Works with Python 3.8 and later, and imports only what the
interpreter has loaded or loads quickly.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
import threading
import time

TYPE_CHECKING = False  # as typing has it, without the time that importing it costs
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from phalanx_libraries import Libraries

    Group = tuple[str, int, int, int]  # name; last enqueued, started, completed

PAGE = 4096
MAGIC = b"PHXBEAT1"
# sequence (odd while it is written), pid, beats, time of the last beat, phase, number of groups,
# collectives enqueued and completed in all groups
HEAD = struct.Struct("<QqQQIIqq")
HEAD_AT = 8
REQUEST = struct.Struct("<Q")
REQUEST_AT = 64  # written by the supervisor
ANSWER_AT = 72  # written by the rank, once the files of a request are there
PLACES = struct.Struct("<QQQ")  # looks at the main thread; of these in a data loader, in a collective
PLACES_AT = 80
TURN_ASKED_AT = 104  # written by the supervisor
TURN_TOLD_AT = 112  # written by the rank: the number, with what was found in its last two bits
MOVES_AT = 120  # how often the main thread was elsewhere than before, where nothing else tells of progress
GROUP = struct.Struct("<16sqqq")  # name; last enqueued, started, completed
GROUPS_AT = 128
STEP = struct.Struct("<qq16s")  # what a callback of a trainer told: step, time, phase
STEP_AT = PAGE - STEP.size
MOST_GROUPS = (STEP_AT - GROUPS_AT) // GROUP.size
STARTED, IMPORTED, CONNECTED, LEAVING = 1, 2, 3, 4
BEAT_S = 0.25
RECORDER = "torch._C._distributed_c10d"
_pages: list[mmap.mmap] = []  # this rank's own, once it has one


def start(told: str) -> None:
    """Begin, if this is the first process of the rank that comes here. `told` is `rank:size:/path/of/the/record`."""
    rank, size, path = told.split(":", 2)
    page = _claim(path)
    if page is None:
        return
    watch = _Watch(int(rank), int(size), os.path.dirname(path), page)
    watch.beat(STARTED)
    _prepare(path)
    watch.libraries = sys.modules["phalanx_libraries"].Libraries(threading.get_ident(), watch.run_beside)
    arrivals = sys.modules["phalanx_arrivals"].Arrivals
    sys.meta_path.insert(0, arrivals({"torch.distributed": watch.torch_comes}, watch.libraries.after_imports()))


def beat_here(rank: int, size: int, path: str, libraries: Libraries | None) -> None:
    """The same for a process that another launcher started, in the thread that calls: until the process ends."""
    page = _claim(path)
    if page is not None:
        _prepare(path)
        sys.modules["phalanx_software"].switch_recorder_on()
        watch = _Watch(rank, size, os.path.dirname(path), page, counts_motion=True)
        watch.libraries = libraries
        watch.run_here()


def note_step(step: int, phase: str) -> bool:
    """For callbacks of trainers: at which step the rank is, and what it does. Whether anybody watches."""
    if not _pages:
        return False
    STEP.pack_into(_pages[0], STEP_AT, step, time.monotonic_ns(), phase.encode()[:16])
    return True


def _prepare(path: str) -> None:
    """Load our modules now: their folder is on the path for a moment only."""
    import phalanx_arrivals  # noqa: F401
    import phalanx_last_call
    import phalanx_libraries  # noqa: F401
    import phalanx_socket  # noqa: F401
    import phalanx_software
    import phalanx_trackers  # noqa: F401
    import phalanx_turning  # noqa: F401

    phalanx_software.enable_faulthandler()
    phalanx_last_call.note_at_exit(os.path.dirname(path))


def _claim(path: str) -> mmap.mmap | None:
    """The record, mapped; None if another living process of this rank keeps it."""
    import fcntl

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not inherited by fork; gone with the process
    except OSError:
        os.close(descriptor)
        return None
    if os.fstat(descriptor).st_size < PAGE:
        os.ftruncate(descriptor, PAGE)
    page = mmap.mmap(descriptor, PAGE)  # the descriptor stays open: closing it would drop the lock
    _pages[:] = [page]
    return page


class _Watch:
    def __init__(self, rank: int, size: int, folder: str, page: mmap.mmap, counts_motion: bool = False) -> None:
        self._rank, self._size, self._folder, self._page = rank, size, folder, page
        self._pid = os.getpid()
        self._main = threading.main_thread().ident or 0
        self._counts_motion, self._moves, self._state = counts_motion, 0, 0
        self._sequence = self._beats = 0
        self._looks = [0, 0, 0]
        self._groups_seen: Sequence[Group] = ()
        self.libraries: Libraries | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        page[0:8] = MAGIC
        self._answered = REQUEST.unpack_from(page, ANSWER_AT)[0]

    def torch_comes(self) -> None:
        """It is about to be imported."""
        sys.modules["phalanx_software"].switch_recorder_on()
        self.run_beside()

    def run_beside(self) -> None:
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._run, name="phalanx-watch", daemon=True)
        self._thread.start()
        self._open()

    def run_here(self) -> None:
        self._thread = threading.current_thread()
        self._open()
        self._run()

    def _open(self) -> None:
        import atexit

        atexit.register(self._leave)
        about = {"rank": self._rank, "size": self._size, "folder": self._folder}
        sys.modules["phalanx_socket"].serve(about, self._main, self._recorders_now)

    def _recorders_now(self) -> list[object]:
        """What the flight recorders hold, for who asks over the socket; nothing before there is a process group."""
        return [] if self._groups() is None else [json.loads(dump()) for _, dump in _recorders()]

    def _leave(self) -> None:
        """Before the interpreter ends: nobody may be inside the recorder when its memory goes away. It outlives a group that came and went
        between two beats."""
        if os.getpid() == self._pid and self._thread is not None:
            self._stop.set()
            self._thread.join(1.0)
            try:
                self._dump_last_words()
                self._groups_seen = self._all_groups(is_leaving=True) or self._groups_seen
            except Exception:  # the end of the rank is not ours to disturb
                pass
            self.beat(LEAVING, self._groups_seen)

    def _dump_last_words(self) -> None:
        """A rank that ends by an exception, or in the middle of a collective, leaves its recorder: what it called last
        tells who broke step, and nobody can ask it later."""
        self._dump_calls(self._answered + 1)
        distributed = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_initialized():
            return
        outstanding = any(enqueued > completed for _, enqueued, _, completed in self._groups() or ())
        if outstanding or getattr(sys, "last_value", None) is not None:
            asked = REQUEST.unpack_from(self._page, REQUEST_AT)[0]
            number = max(asked, self._answered + 1)
            self._dump(number)
            self._answered = number
            REQUEST.pack_into(self._page, ANSWER_AT, number)

    def _run(self) -> None:
        told = False
        while not self._stop.wait(BEAT_S):
            try:
                groups = self._all_groups()
                self.beat(IMPORTED if groups is None else CONNECTED, groups or ())
                if groups is not None and not told:
                    told = True
                    self._write(
                        "versions.json", json.dumps(sys.modules["phalanx_software"].versions(self._rank)).encode()
                    )
                asked = REQUEST.unpack_from(self._page, REQUEST_AT)[0]
                if asked > self._answered:
                    self._answer(asked)
                self._tell_turning()
            except Exception:  # a page that cannot be written is no reason to disturb the job
                if self._stop.wait(5.0):
                    return

    def _all_groups(self, is_leaving: bool = False) -> Sequence[Group] | None:
        """Those of PyTorch's recorders, and one each for Horovod and TensorFlow; None before a rank has met its peers."""
        groups, others = self._groups(is_leaving), self.libraries.groups() if self.libraries is not None else []
        return [*(groups or ()), *others] if others else groups

    def _groups(self, is_leaving: bool = False) -> Sequence[Group] | None:
        """(name, enqueued, started, completed) of each group; None before there is one, and after it unless the rank is leaving.

        Asked before, the recorder would be made with the variables of that moment, not with those the script sets.
        """
        distributed = sys.modules.get("torch.distributed")
        recorder = sys.modules.get(RECORDER)
        is_initialized = is_leaving or getattr(distributed, "is_initialized", bool)()
        if distributed is None or recorder is None or not is_initialized:
            return None
        found: list[Group] = []
        told: list[object] = []
        for prefix, dump in _recorders():
            status = json.loads(dump(includeCollectives=False)).get("pg_status") or {}
            if status in told:
                continue  # where PyTorch has one recorder under both names
            told.append(status)
            found.extend(
                (prefix + name, *sys.modules["phalanx_software"].counts(one)) for name, one in sorted(status.items())
            )
        return found

    def beat(self, phase: int, groups: Sequence[Group] = ()) -> None:
        page = self._page
        self._beats += 1
        self._look(
            any(enqueued > completed for _, enqueued, _, completed in groups),
            any(started > completed for _, _, started, completed in groups),
        )
        enqueued = sum(max(group[1], 0) for group in groups)
        completed = sum(max(group[3], 0) for group in groups)
        kept = self._groups_seen = groups[:MOST_GROUPS]
        self._sequence += 2
        REQUEST.pack_into(page, HEAD_AT, self._sequence - 1)
        for number, (name, *counts) in enumerate(kept):
            GROUP.pack_into(page, GROUPS_AT + number * GROUP.size, name.encode()[:16], *counts)
        PLACES.pack_into(page, PLACES_AT, *self._looks)
        REQUEST.pack_into(page, MOVES_AT, self._moves)
        done = (phase, len(kept), enqueued, completed)
        HEAD.pack_into(page, HEAD_AT, self._sequence, self._pid, self._beats, time.monotonic_ns(), *done)

    def _look(self, outstanding: bool, on_device: bool) -> None:
        """Where the main thread is: in a data loader, or in a collective that is not done. A device that has begun a
        collective and not ended it waits there for the other devices, whatever the thread does."""
        frame = sys._current_frames().get(self._main)
        if self._counts_motion and frame is not None and "torch.distributed" not in sys.modules:
            state = sys.modules["phalanx_socket"].state_of(frame)
            self._moves += state != self._state
            self._state = state
        calls = sys.modules.get("phalanx_calls")
        place = calls.place_of(frame) if calls is not None else ""
        self._looks[0] += 1
        self._looks[1] += place == "data"
        self._looks[2] += on_device or (place == "collective" and outstanding)

    def _answer(self, number: int) -> None:
        """The files of a snapshot."""
        try:
            distributed = sys.modules.get("torch.distributed")
            if distributed is not None and distributed.is_initialized():
                self._dump(number)
            self._dump_calls(number)
        finally:
            self._answered = number
            REQUEST.pack_into(self._page, ANSWER_AT, number)

    def _tell_turning(self) -> None:
        """Whether the main thread turns in a circle, if that is asked. Takes a second, in which nothing else is looked at."""
        asked = REQUEST.unpack_from(self._page, TURN_ASKED_AT)[0]
        if asked > REQUEST.unpack_from(self._page, TURN_TOLD_AT)[0] >> 2:
            found = sys.modules["phalanx_turning"].turning_of(self._main)
            REQUEST.pack_into(self._page, TURN_TOLD_AT, asked << 2 | found)

    def _dump(self, number: int) -> None:
        """The recorder of the device's collectives; that of the processor's beside it, if both have something."""
        dumps = [json.loads(dump()) for _, dump in _recorders()]
        dumps = [dump for dump in dumps if dump.get("entries")] or dumps[:1]
        for place, dump in enumerate(dumps):
            if place == 0 or dump["entries"] != dumps[0]["entries"]:
                dump["rank"], dump["world_size"] = self._rank, self._size
                kind = "cpu-" if place else ""
                self._write(f"collectives-{kind}{number}.json", json.dumps(dump).encode())

    def _dump_calls(self, number: int) -> None:
        told = self.libraries.as_json(self._rank, self._size) if self.libraries is not None else None
        if told is not None:
            self._write(f"calls-{number}.json", json.dumps(told).encode())

    def _write(self, name: str, data: bytes) -> None:
        path = os.path.join(self._folder, name)
        with open(path + ".part", "wb", opener=_private) as file:
            file.write(data)
        os.replace(path + ".part", path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _recorders() -> list[tuple[str, Callable[..., bytes]]]:
    """NCCL keeps a recorder of its own (PyTorch 2.5 and later); Gloo and others share the general one (2.8 and later)."""
    recorder = sys.modules.get(RECORDER)
    named = (("", "_dump_nccl_trace_json"), ("cpu:", "_dump_fr_trace_json"))
    found = [(prefix, getattr(recorder, name)) for prefix, name in named if hasattr(recorder, name)]
    return found if len(found) > 1 else [("", dump) for _, dump in found]
