"""Section `names`: what the host's own name and the names in its configuration resolve to, and what of it can be bound.

{"own": "node7", "asked": {"node7": {"addresses": ["127.0.1.1"], "bindable": ["127.0.1.1"], "from": {"127.0.1.1": "127.0.0.1"}, "seconds": 0.001}}, "hosts": "…"}
"""

from __future__ import annotations

import json
import socket
import threading
import time

from . import interfaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .collect import Setting

_PATIENCE_S = 2.0
_MOST_NAMES = 2000
NO_ANSWER = "no answer"


def names(setting: Setting) -> dict[str, Any]:
    """Own name, names of the configuration, and whatever else `args["names"]` lists."""
    own = socket.gethostname()
    wanted = [own, *configured(setting.environment), *map(str, setting.listed("names"))]
    return {
        "own": own,
        "asked": look_up(wanted),
        "switch": _line_of("/etc/nsswitch.conf", "hosts:"),
        "servers": _servers(),
    }


def configured(environment: dict[str, str]) -> list[str]:
    """Names of hosts that stand in variables."""
    endpoints = ("PET_RDZV_ENDPOINT", "PET_MASTER_ADDR", "HOROVOD_GLOO_RENDEZVOUS_ADDR", "NCCL_COMM_ID")
    found = [environment.get("MASTER_ADDR", ""), *(host_of(environment.get(variable, "")) for variable in endpoints)]
    try:
        cluster = json.loads(environment.get("TF_CONFIG", "{}")).get("cluster", {})
        for members in cluster.values():
            found += [host_of(member) for member in (members.values() if isinstance(members, dict) else members)]
    except (ValueError, AttributeError, TypeError):
        pass
    return [name for name in dict.fromkeys(found) if name]


def host_of(endpoint: str) -> str:
    """`node0` of `node0:2222` and of `[fe80::1]:2222`."""
    endpoint = str(endpoint)
    if endpoint.startswith("["):
        return endpoint[1:].partition("]")[0]
    return endpoint.rpartition(":")[0] if endpoint.count(":") == 1 else endpoint


def look_up(wanted: list[str]) -> dict[str, Any]:
    """All names at once: a dead name server holds up each as long as all."""
    found: dict[str, Any] = {}
    threads = []
    for name in list(dict.fromkeys(wanted))[:_MOST_NAMES]:
        thread = threading.Thread(target=_look_up_one, args=(name, found), daemon=True)
        thread.start()
        threads.append((name, thread))
    until = time.monotonic() + _PATIENCE_S
    for name, thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
        if name not in found:
            found[name] = {"addresses": [], "bindable": [], "error": NO_ANSWER, "seconds": _PATIENCE_S}
    return dict(found)


def _look_up_one(name: str, found: dict[str, Any]) -> None:
    began = time.monotonic()
    error = ""
    answers: list[Any] = []
    try:
        answers = socket.getaddrinfo(name, None, socket.AF_UNSPEC, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as failure:
        error = getattr(failure, "strerror", None) or str(failure)
    addresses = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
    found[name] = {
        "addresses": addresses,
        "bindable": [address for address in addresses if can_bind(address)],
        "from": {address: interfaces.source_towards(address) for address in addresses},
        "error": error,
        "seconds": round(time.monotonic() - began, 3),
    }


def can_bind(address: str) -> bool:
    """Whether a socket can be bound to it, which is how Gloo tells an address of its own."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        target = socket.getaddrinfo(address, 0, family, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)[0][4]
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.bind(target)
            return True
    except OSError:
        return False


def _servers() -> list[str]:
    try:
        with open("/etc/resolv.conf", encoding="utf-8", errors="replace") as file:
            return [line.split()[1] for line in file if line.startswith("nameserver") and len(line.split()) > 1]
    except OSError:
        return []


def _line_of(path: str, start: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return next((line.strip() for line in file if line.startswith(start)), "")
    except OSError:
        return ""


def resolve(args: dict[str, Any], emit: Callable[[Any], None]) -> None:
    """The verb: `{"names": ["node0", …]}` → what each resolves to here."""
    emit(look_up([str(name) for name in args.get("names") or ()]))


FACTS = {"names": names}
VERBS = {"resolve": resolve}
