"""The agent of one node: meets the driver, gets the job's files, runs this node's ranks under the supervisor, reports.

    python -m phalanx.remote.agent             over standard input and output; the first line is the job's token
    python -m phalanx.remote.agent --dial      connects to the driver: PHALANX_DRIVER=host:port,… and the token from the file
                                               PHALANX_TOKEN_FILE or the variable PHALANX_TOKEN. Its number is in PHALANX_NODE,
                                               or in the variable that `--node-in NAME` names; else the driver deals it out
    … --name-in NAME                           the node's name is in this variable, else it is the host's
    … --forget PREFIX,…                        drops variables of the engine that are not true of the ranks below the agent

Started by whatever engine there is; behaves the same under all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from phalanx.remote.agreement import look_at, node_name
from phalanx.remote.link import Link, LinkError, Message
from phalanx.remote.node import NodeAttempt, ReservedPorts
from phalanx.remote.orders import Orders
from phalanx.remote.packing import PackingError, unpack
from phalanx.remote.scratch import Scratch
from phalanx.remote.shipping import PROJECT as UNPACKED
from phalanx.remote.start_message import StartMessage
from phalanx.run.children import Children
from phalanx.run.plan import PlanError

PROJECT, CALL = "project.tar", "call.pickle"
_BEAT = 1.0
_DIAL_FOR = 120.0  # seconds in which the driver must be reached
_REFUSED_FOR = 10.0  # seconds after which a driver that refuses us is taken for gone
_STALE = 10.0  # seconds for one attempt to reach it


class Agent:
    """Serves one driver until it says good-bye or is gone."""

    def __init__(self, link: Link, scratch: Path, address: str, name: str) -> None:
        self._link = link
        self._scratch = scratch
        self._address = address
        self._name = name
        self._orders = Orders(link, scratch)
        self._children = Children()
        self._reserved: ReservedPorts | None = None
        self._asked_to_end = False

    def serve(self, node: int | None) -> None:
        """Greet, then do what is asked."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        facts = {"host": self._name, "address": self._address, "pid": os.getpid(), "cores": os.cpu_count()}
        self._link.send("node", node=node, **facts)
        try:
            while not self._orders.is_gone and not self._asked_to_end:
                message = self._orders.next(_BEAT)
                if message is None:
                    self._link.send("beat")
                elif message.kind == "bye":
                    break
                else:
                    self._do(message)
        finally:
            self._release_ports()
            self._children.close()

    def _do(self, message: Message) -> None:
        try:
            match message.kind:
                case "check":
                    told, found = look_at(message.data.get("python"), message.data["packages"])
                    self._link.send("packages", interpreter=told, found=found)
                case "unpack":
                    self._unpack()
                case "prepare":
                    self._prepare(message.data)
                case "start":
                    self._run(message.data)
        except (PlanError, PackingError) as error:
            self._link.send("refused", text=str(error))
        except (OSError, KeyError, ValueError, TypeError, subprocess.SubprocessError) as error:
            self._link.send("refused", text=f"the agent could not do it: {type(error).__name__}: {error}")

    def _unpack(self) -> None:
        folder = self._scratch / UNPACKED
        folder.mkdir(exist_ok=True)
        unpack(self._scratch / PROJECT, folder)
        (self._scratch / PROJECT).unlink()
        os.chdir(folder)

    def _prepare(self, data: Any) -> None:
        """Hold ports for this node's ranks, and serve the store where that is our part."""
        self._release_ports()
        self._reserved = ReservedPorts(self._address, int(data["ports"]), bool(data.get("store")), self._children)
        self._link.send("ready", ports=list(self._reserved.ports), store_port=self._reserved.store_port)

    def _run(self, data: Any) -> None:
        if self._reserved is None:
            raise PlanError("the driver asked to start before it asked to prepare")
        reserved, self._reserved = self._reserved, None
        attempt = NodeAttempt(
            StartMessage.from_message(data), reserved, self._scratch, self._link, self._children, self._orders
        )
        reason = attempt.run()
        self._link.send("done", reason=reason.kind, text=reason.text, status=reason.status, ranks=list(reason.ranks))

    def _release_ports(self) -> None:
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._asked_to_end = True  # between attempts; during one the supervisor takes signals


def _over_streams() -> tuple[Link, str]:
    """Take the standard streams for ourselves, so that nothing that prints can break a frame."""
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    token = b""
    while not token.endswith(b"\n") and len(token) < 200:
        piece = os.read(reading, 1)
        if not piece:
            sys.exit("phalanx agent: nobody speaks to it on standard input; it is started by phalanx, not by hand")
        token += piece
    link = Link.over_pipes(reading, writing)
    link.mark()
    link.prove(token.decode().strip(), is_driver=False)
    given = os.environ.get("PHALANX_ADDRESS")
    by_ssh = os.environ.get("SSH_CONNECTION", "").split()
    return link, given or (by_ssh[2] if len(by_ssh) == 4 else "127.0.0.1")


def _over_network() -> tuple[Link, str]:
    """Connect to the first of the driver's addresses at which a holder of the job's token answers."""
    token = os.environ.pop("PHALANX_TOKEN", "")
    if file := os.environ.get("PHALANX_TOKEN_FILE"):
        try:
            token = Path(file).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            sys.exit(f"phalanx agent: the job's token cannot be read from {file}: {error}")
    addresses = [one for one in os.environ.get("PHALANX_DRIVER", "").split(",") if one]
    if not token or not addresses:
        sys.exit("phalanx agent: PHALANX_DRIVER and PHALANX_TOKEN_FILE or PHALANX_TOKEN must be set")
    began = time.monotonic()
    told: dict[str, Exception] = {}
    while time.monotonic() < began + _DIAL_FOR:
        for address in addresses:
            host, _, port = address.rpartition(":")
            try:
                connected = socket.create_connection((host.strip("[]"), int(port)), timeout=_STALE)
                connected.settimeout(None)
                own = os.environ.get("PHALANX_ADDRESS") or connected.getsockname()[0]
                link = Link.over_socket(connected)
                link.prove(token, is_driver=False)
            except (OSError, ValueError, LinkError) as error:
                told[address] = error
                continue
            return link, own
        # The driver listens before any agent is started: where a machine answers and it is not there, it is gone.
        is_gone = any(isinstance(one, (ConnectionError, LinkError)) for one in told.values())
        if is_gone and time.monotonic() > began + _REFUSED_FOR:
            break
        time.sleep(1.0)
    words = "; ".join(f"{address}: {error}" for address, error in told.items())
    sys.exit(f"phalanx agent on {node_name()}: the driver cannot be reached ({words}); is its port open to this node?")


def forget(prefixes: str) -> None:
    """Drop variables by which the engine tells the agent its place: frameworks would take them for their ranks'."""
    unwanted = tuple(prefix for prefix in prefixes.split(",") if prefix)
    for name in [name for name in os.environ if name.startswith(unwanted)] if unwanted else ():
        del os.environ[name]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m phalanx.remote.agent")
    parser.add_argument("--dial", action="store_true")
    parser.add_argument("--node-in", metavar="NAME", default="PHALANX_NODE")
    parser.add_argument("--name-in", metavar="NAME", default="PHALANX_NODE_NAME")
    parser.add_argument("--forget", metavar="PREFIX,…", default="")
    options = parser.parse_args()
    try:
        link, address = _over_network() if options.dial else _over_streams()
    except (LinkError, OSError) as error:
        sys.exit(f"phalanx agent on {node_name()}: {error}")
    number = os.environ.get(options.node_in, "")
    name = os.environ.get(options.name_in) or node_name()
    forget(options.forget)
    try:
        with Scratch() as scratch:
            Agent(link, scratch.folder, address, name).serve(int(number) if number.isdigit() else None)
    except ConnectionError:
        sys.exit(f"phalanx agent on {node_name()}: the driver is gone")
    finally:
        with contextlib.suppress(OSError):
            link.close()


if __name__ == "__main__":
    main()
