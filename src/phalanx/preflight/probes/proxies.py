"""Proxies for web traffic that would swallow gRPC between TensorFlow's tasks."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from phalanx.model import Unchecked
from phalanx.preflight.agent.names import configured
from phalanx.preflight.check_fact import CheckFact, observe
from phalanx.preflight.host_facts import HostFacts
from phalanx.preflight.options import CheckOptions

_PROXY = ("grpc_proxy", "https_proxy", "http_proxy")  # in the order in which gRPC asks
_EXCEPT = ("no_grpc_proxy", "no_proxy")


def examine(all_facts: Sequence[HostFacts], options: CheckOptions) -> Iterable[CheckFact | Unchecked]:
    """Only where TF_CONFIG tells that tasks speak gRPC."""
    for one in all_facts:
        if not one.variable("TF_CONFIG"):
            continue
        proxy = next((name for name in _PROXY if one.variable(name)), None)
        if proxy is None:
            continue
        hosts = configured({"TF_CONFIG": one.variable("TF_CONFIG") or ""})
        exceptions = next((one.variable(name) or "" for name in _EXCEPT if one.variable(name)), "")
        through = [host for host in hosts if not is_excepted(host, exceptions)]
        if through:
            yield observe(
                "proxy-between-tasks",
                (one.label,),
                variable=proxy,
                proxy=one.variable(proxy),
                through=", ".join(through[:3]),
                tasks=",".join(hosts),
            )


def is_excepted(host: str, exceptions: str) -> bool:
    """As gRPC reads no_proxy: a list of ends of names, and of networks."""
    for part in (entry.strip() for entry in exceptions.split(",")):
        if not part:
            continue
        if part == "*" or host.lower().endswith(part.lower()):
            return True
        try:
            if "/" in part and ipaddress.ip_address(host) in ipaddress.ip_network(part, strict=False):
                return True
        except ValueError:
            continue
    return False
