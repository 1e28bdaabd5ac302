"""A host of the bed: how commands run on it, and the levers by which faults are made."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from phalanx.lab.errors import LabError


@dataclass(slots=True)
class Host:
    """One network, process and mount namespace, with a name, an address and the variables of a job."""

    name: str
    number: int
    pid: int
    address: str
    address6: str
    folder: Path
    user_namespace: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    limits: list[str] = field(default_factory=list)  # options of prlimit
    ranks: list[dict[str, str]] = field(default_factory=list)  # where several run here, what each is told beside
    user: int = 0  # whom the job runs as: some limits do not bind root

    @property
    def port(self) -> str:
        """The switch's end of this host's cable."""
        return f"p{self.number}"

    @property
    def entry(self) -> list[str]:
        """The command that enters the namespaces, without the job's variables."""
        return self._enter(Path.cwd())

    def _enter(self, folder: Path) -> list[str]:
        user = ["-U", "--preserve-credentials"] if self.user_namespace else []
        return ["nsenter", "-t", str(self.pid), *user, "-n", "-u", "-m", "-i", "-p", "-W", str(folder)]

    @property
    def prefix(self) -> list[str]:
        """What to put before a command to run it here as a rank of the job, so that it ends when the entering process is killed."""
        return self.in_folder(Path.cwd())

    def in_folder(self, folder: Path, more: Mapping[str, str] | None = None) -> list[str]:
        """The same in another folder than this process's own, with further variables."""
        limits = ["prlimit", *self.limits] if self.limits else []
        # May read what root may, such as this interpreter, and is bound by all limits.
        caps = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
        own = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", *caps] if self.user else []
        end = ["setpriv", "--pdeathsig", "KILL"]  # a change of the user forgets it
        return [*self._enter(folder), "--", *limits, *own, *end, "env", *self._settings(more or {})]

    def _settings(self, more: Mapping[str, str]) -> list[str]:
        told = {**self.variables, **more}
        unset = [item for name, value in told.items() if value == UNSET for item in ("-u", name)]
        return unset + [f"{name}={value}" for name, value in told.items() if value != UNSET]

    def run(
        self, command: Sequence[str], *, timeout: float = 60, text: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a command here to its end."""
        done = subprocess.run(
            [*self.prefix, *command], input=text, capture_output=True, text=True, timeout=timeout, check=False
        )
        if check and done.returncode != 0:
            raise LabError(
                f"{self.name}: {shlex.join(command)} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}"
            )
        return done

    def start(self, command: Sequence[str], **options: object) -> subprocess.Popen[str]:
        """Start a command here; it ends with the bed at the latest."""
        return subprocess.Popen([*self.prefix, *command], text=True, **options)  # type: ignore[call-overload,no-any-return]

    def ip(self, *lines: str) -> None:
        """Lines of `ip -batch`."""
        batch([*self.entry, "--", "ip", "-batch", "-"], lines, self.name)

    def nft(self, rules: str) -> None:
        """Load a table into this host's firewall."""
        load([*self.entry, "--", "nft", "-f", "-"], rules, self.name)

    def filter(self, *rules: str, hook: str = "input") -> None:
        """Rules of this host's firewall, all else accepted; several calls add up."""
        self.nft(table("inet", hook, rules))

    def write(self, path: str, text: str) -> None:
        """Set a kernel variable or another file as this host sees it."""
        self.run(["sh", "-c", 'cat > "$0"', path], text=text)

    def names(self, text: str) -> None:
        """This host's /etc/hosts."""
        (self.folder / "hosts").write_text(text, encoding="utf-8")


UNSET = "\0unset"
JOB_VARIABLES = (
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
)  # that the bed sets


def table(family: str, hook: str, rules: Sequence[str]) -> str:
    """An nft table of one chain."""
    lines = "\n".join(f"  {rule}" for rule in rules)
    return (
        f"table {family} phalanx_{hook} {{\n chain {hook} {{\n  type filter hook {hook} priority 0;\n{lines}\n }}\n}}\n"
    )


def batch(command: Sequence[str], lines: Sequence[str], where: str) -> None:
    """Feed lines to `ip -batch`."""
    load(command, "".join(f"{line}\n" for line in lines), where)


def load(command: Sequence[str], text: str, where: str) -> None:
    """Feed a text to a command that must succeed."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise LabError(f"{where}: {done.stderr.strip()[-500:]} in\n{text}")
