"""Section `firewall`: the rules that drop or reject, where they may be read: nftables, else iptables. Nothing is changed."""

from __future__ import annotations

import os
import shutil
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .collect import Setting

_PATIENCE_S = 2.0
_MOST_LINES = 200
_SYSTEM = "/usr/sbin:/sbin:/usr/bin:/bin"


def firewall(setting: Setting) -> dict[str, Any]:
    """`readable`, by which program, and the lines that turn packets away."""
    for name, arguments in (("nft", ["list", "ruleset"]), ("iptables-save", []), ("ip6tables-save", [])):
        program = shutil.which(name, path=os.environ.get("PATH", "") + ":" + _SYSTEM)
        if program is None:
            continue
        try:
            done = subprocess.run(
                [program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=_PATIENCE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            text = done.stdout.decode("utf-8", "replace")
            return {"readable": True, "by": name, "closing": closing_lines(text), "rules": len(text.splitlines())}
    return {"readable": False, "by": None, "closing": [], "rules": 0}


def closing_lines(text: str) -> list[dict[str, str]]:
    """Rules and policies that drop, reject or reset, each with the chain that it stands in."""
    found: list[dict[str, str]] = []
    chain = table = hook = ""
    for raw in text.splitlines():
        line = raw.strip()
        words = line.split()
        if line.startswith("table "):
            table = " ".join(words[1:3]).rstrip(" {")
        elif line.startswith("chain "):
            chain, hook = words[1], ""
        elif line.startswith(":") and len(words) > 1:  # iptables-save: `:INPUT DROP [0:0]`
            chain = words[0][1:]
            if words[1] in ("DROP", "REJECT"):
                found.append(
                    {"table": table, "chain": chain, "hook": chain.lower(), "rule": "policy " + words[1].lower()}
                )
        elif line.startswith("*"):
            table = line[1:]
        elif line.startswith("-A ") and ("-j DROP" in line or "-j REJECT" in line):
            found.append({"table": table, "chain": words[1], "hook": words[1].lower(), "rule": " ".join(words[2:])})
        elif line.startswith("type "):  # nft: `type filter hook input priority filter; policy drop;`
            hook = words[words.index("hook") + 1] if "hook" in words else ""
            if "policy drop" in line:
                found.append({"table": table, "chain": chain, "hook": hook, "rule": line})
        elif "drop" in words or "reject" in words:
            found.append({"table": table, "chain": chain, "hook": hook, "rule": line})
    return found[:_MOST_LINES]


FACTS = {"firewall": firewall}
