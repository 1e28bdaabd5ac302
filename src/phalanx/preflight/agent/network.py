"""The network verbs: `listen`, `connect`, `half-open`, `measure`, `idle`, `close`. Only sockets that the check itself opens, all bounded in time."""

from __future__ import annotations

import os
import random
import resource
import socket
import threading
import time

from . import kernel
from .calling import Call, Caller, resolve
from .listening import Listener
from .measuring import measure_one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Emit = Callable[[Any], None]

_listeners: dict[str, Listener] = {}
_kept: dict[str, list[tuple[Any, socket.socket, float]]] = {}
_lock = threading.Lock()
_LIFE_S = 120.0
_NAME_S = 2.0


def listen(args: dict[str, Any], emit: Emit) -> None:
    """Listen on the ports given, on one that the kernel chooses, and on some across its range of ephemeral ports."""
    _raise_limit()
    token = str(args["token"])
    listener = Listener(token, str(args["label"]), float(args.get("life", _LIFE_S)))
    families = [socket.AF_INET, socket.AF_INET6] if socket.has_ipv6 else [socket.AF_INET]
    opened = [
        dict(listener.open(int(port), family), given=True) for port in args.get("ports", []) for family in families
    ]
    opened += [dict(listener.open(0, family), kind="any") for family in families]
    low, high = _ephemeral_range()
    for part in args.get("spread", []):
        opened += [
            dict(one, kind="spread") for one in _open_near(listener, low + int((high - low) * float(part)), families)
        ]
    listener.start()
    with _lock:
        _listeners[token] = listener
    emit({"ports": opened, "range": [low, high], "forgetting": kernel.forgetting(), "load": _load()})


def _open_near(listener: Listener, port: int, families: Sequence[int]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for _ in range(8):
        chosen = min(65535, port + random.randint(0, 200))
        told = [one for one in (listener.open(chosen, family) for family in families) if "errno" not in one]
        if told:
            break
    return told


def _ephemeral_range() -> tuple[int, int]:
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            low, high = file.read().split()
        return int(low), int(high)
    except (OSError, ValueError):
        return 32768, 60999


def _raise_limit() -> None:
    """The soft limit of open files is often far below what this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(hard, 8192)
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            pass


def _load() -> dict[str, Any]:
    found: dict[str, Any] = {"average": os.getloadavg()[0], "cores": os.cpu_count()}
    try:
        with open("/proc/pressure/cpu", encoding="ascii") as file:
            found["waiting"] = float(file.readline().split("avg10=")[1].split()[0])
    except (OSError, ValueError, IndexError):
        pass
    return found


def connect(args: dict[str, Any], emit: Emit) -> None:
    """Call all targets at once; one answer for each address that a target's name has."""
    _raise_limit()
    token = str(args["token"])
    caller = Caller(
        token, str(args["label"]), float(args["timeout"]), float(args.get("patience", 2.0)), int(args.get("large", 0))
    )
    calls: list[Call] = []
    me = args.get("me")
    # To all others at their addresses: written short, since with a thousand hosts there are a million of them.
    mesh = [
        {"id": [me, number, "mesh"], "address": address, "port": port, "keep": bool(keep)}
        for number, address, port, keep in args.get("mesh", [])
    ]
    unresolved = _look_up(args.get("targets", []), calls)
    calls += [Call(target, target["address"], 0) for target in mesh]
    for told in unresolved:
        emit(told)
    caller.run(calls)
    now = time.monotonic()
    with _lock:
        for call in calls:
            if call.kept is not None:
                _kept.setdefault(token, []).append((call.target.get("id"), call.kept, now))
    fine = []
    for call in calls:
        row = _row_of(call, token)
        if row is None:
            emit(call.result)
        else:
            fine.append(row)
    emit({"fine": fine})


def _row_of(call: Call, token: str) -> list[Any] | None:
    """A call of the mesh of which there is nothing to say, short; None for all others."""
    told = call.result or {}
    identity = call.target.get("id") or [None, None, None]
    plain = told.get("outcome") == "ok" and told.get("large", "ok") == "ok" and told.get("token") == token
    if identity[2] != "mesh" or not plain or (told.get("saw") or [None])[0] != told.get("local"):
        return None
    info = told.get("info") or {}
    rtt = info.get("min_rtt") or info.get("rtt") or 0
    return [identity[1], told.get("peer"), rtt, info.get("total_retrans", 0), told.get("attempts", 1)]


def _look_up(targets: list[dict[str, Any]], calls: list[Call]) -> list[dict[str, Any]]:
    """Names to addresses, each in a thread: a dead name server must not hold up the others."""
    found: dict[str, list[str] | str] = {}

    def look(name: str) -> None:
        try:
            found[name] = resolve(name, 0)
        except (OSError, UnicodeError) as error:
            found[name] = str(error)

    names = {str(target["address"]) for target in targets}
    threads = [threading.Thread(target=look, args=(name,), daemon=True) for name in sorted(names)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, began + _NAME_S - time.monotonic()))
    missing = []
    for target in targets:
        addresses = found.get(str(target["address"]), "no answer of the name service")
        if isinstance(addresses, str):
            missing.append(
                {"id": target.get("id"), "outcome": "unresolved", "error": addresses, "port": target["port"]}
            )
        else:
            calls.extend(Call(target, ip, order) for order, ip in enumerate(addresses))
    return missing


def half_open(args: dict[str, Any], emit: Emit) -> None:
    """Whose requests to connect came in, while our answers did not get back."""
    listener = _listeners.get(str(args["token"]))
    emit({"half_open": kernel.half_open(listener.ports()) if listener else []})


def measure(args: dict[str, Any], emit: Emit) -> None:
    """Latency, loss and bandwidth towards some targets, one after the other."""
    for target in args["targets"]:
        began = time.process_time()
        told = measure_one(str(args["token"]), str(args["label"]), target, args)
        emit(dict(told, id=target.get("id"), ip=target["address"], processor=time.process_time() - began))


def idle(args: dict[str, Any], emit: Emit) -> None:
    """Whether the connections that were kept and have been idle since still carry a message."""
    with _lock:
        kept = _kept.pop(str(args["token"]), [])
    wait = float(args.get("wait", 1.2))
    ends = time.monotonic() + wait
    for _, sock, _ in kept:
        sock.setblocking(False)
        try:
            sock.send(b"ping\n")
        except OSError:
            pass
    for number, sock, since in kept:
        told: dict[str, Any] = {"id": number, "idle": time.monotonic() - since}
        try:
            sock.settimeout(max(0.01, ends - time.monotonic()))
            told["outcome"] = "pong" if sock.recv(16) == b"pong\n" else "reset"
        except TimeoutError:  # another class than TimeoutError before Python 3.10
            info = kernel.tcp_info(sock)
            told["outcome"] = "silent" if info.get("unacked", 1) else "busy"
        except OSError as error:
            told.update(outcome="reset", errno=error.errno)
        sock.close()
        emit(told)


def close(args: dict[str, Any], emit: Emit) -> None:
    """Close what the check has opened."""
    token = str(args["token"])
    with _lock:
        listener = _listeners.pop(token, None)
        for _, sock, _ in _kept.pop(token, []):
            sock.close()
    if listener is not None:
        listener.close()
    emit({"load": _load()})


VERBS = {"listen": listen, "connect": connect, "half-open": half_open, "measure": measure, "idle": idle, "close": close}
