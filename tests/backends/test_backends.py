"""How engines are found, and what local and ssh plan. Nothing is started here."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

import phalanx.backends
from phalanx.backends import backend_names, check_options, load_backend, local, ssh
from phalanx.backends.backend import BackendError, Request, spread
from phalanx.remote.agent_pool import plan_job
from phalanx.remote.job import Job
from phalanx.run.spec import JobSpec


def request(workers: int = 4, **options: object) -> Request:
    return Request("train", workers, ("python3", "-m", "agent"), Path("/job"), options=options)


def test_every_file_of_the_folder_is_an_engine() -> None:
    assert {"local", "ssh"} <= set(backend_names())
    assert load_backend("ssh") is ssh
    with pytest.raises(BackendError, match=r"slrum; there are .*local"):
        load_backend("slrum")


def test_two_engines_of_one_name_are_an_error_that_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = EntryPoints([EntryPoint("ssh", "phalanx.backends.local", "phalanx.backends")])
    monkeypatch.setattr(phalanx.backends, "entry_points", lambda group: foreign)
    with pytest.raises(BackendError, match=r"phalanx\.backends\.local .*and phalanx\.backends\.ssh"):
        load_backend("ssh")


def test_an_engine_of_a_third_party(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = EntryPoints([EntryPoint("mine", "phalanx.backends.local", "phalanx.backends")])
    monkeypatch.setattr(phalanx.backends, "entry_points", lambda group: foreign)
    assert load_backend("mine") is local
    broken = EntryPoints([EntryPoint("mine", "no.such.module", "phalanx.backends")])
    monkeypatch.setattr(phalanx.backends, "entry_points", lambda group: broken)
    with pytest.raises(BackendError, match="cannot be loaded"):
        load_backend("mine")


def test_options_that_an_engine_does_not_know_are_refused() -> None:
    with pytest.raises(BackendError, match=r"does not know partition; its options: hosts"):
        check_options(ssh, {"partition": "gpu", "hosts": "a"})


def test_workers_are_spread_evenly() -> None:
    assert spread(7, 3) == (3, 2, 2)
    with pytest.raises(BackendError, match="fewer nodes"):
        spread(2, 3)


def test_local_is_one_agent_unless_more_are_asked_for() -> None:
    assert local.plan(request()).layout == (4,)
    assert local.plan(request(nodes=2)).layout == (2, 2)
    with pytest.raises(BackendError, match="nodes=0"):
        local.plan(request(nodes=0))


def test_ssh_honours_what_the_user_says() -> None:
    plan = ssh.plan(request(hosts="a,me@b", config="/c", port=2222))
    assert plan.layout == (2, 2)
    assert plan.nodes == ("a", "me@b")
    first = plan.commands[0].argv
    assert first[0] == "ssh"
    assert first[-4:] == ("2222", "--", "a", "exec python3 -m agent")
    assert first[first.index("-F") : first.index("-F") + 2] == ("-F", "/c")


def test_ssh_hosts_with_their_own_numbers_of_workers() -> None:
    assert ssh.plan(request(hosts="a:3,b:1")).layout == (3, 1)
    with pytest.raises(BackendError, match="take 5 workers, but 4"):
        ssh.plan(request(hosts="a:3,b:2"))
    with pytest.raises(BackendError, match="every host, or for none"):
        ssh.plan(request(hosts="a:3,b"))


def test_horovod_wants_even_nodes() -> None:
    job = Job(name="x", backend=ssh, spec=JobSpec(size=3, framework="horovod", is_call=True), options={"hosts": "a,b"})  # type: ignore[arg-type]
    with pytest.raises(BackendError, match="as many workers on each node"):
        plan_job(job, Path("job"))


def test_what_is_left_without_a_lost_node() -> None:
    assert ssh.without({"hosts": "a:3, b:1,c:2", "port": 2}, ("b",)) == {"hosts": ["a:3", "c:2"], "port": 2}
    assert local.without({"nodes": 3}, ("local1",)) == {"nodes": 2}


@pytest.mark.parametrize("hosts", ["", None, "-oProxyCommand=evil", "a b", "a;reboot", "$(x)", "a,`x`"])
def test_ssh_takes_nothing_for_a_host_that_is_none(hosts: str | None) -> None:
    with pytest.raises(BackendError):
        ssh.plan(request(hosts=hosts))


def test_words_for_the_remote_shell_are_inert() -> None:
    asked = Request(
        "train", 1, ("/opt/my python", "-m", "agent"), Path("/job"), environment={"A": "x; touch /pwned $(id)"},
        options={"hosts": "a"},
    )  # fmt: skip
    assert ssh.plan(asked).commands[0].argv[-1] == "exec env 'A=x; touch /pwned $(id)' '/opt/my python' -m agent"
