"""The shape of what fails tells where it is blocked: by table, without a network."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.model.facts import sentence_of
from phalanx.preflight.check_fact import STORE_REACHED, CheckFact
from phalanx.preflight.findings import explain
from phalanx.preflight.network import judge
from phalanx.preflight.network.store import proven_by
from phalanx.preflight.network.survey import Survey
from phalanx.preflight.network.talks import Called
from phalanx.preflight.tf_cluster import Task
from tests.preflight.made import host_facts, interface
from tests.preflight.network.surveys import from_host, node, survey, to_host

Failing = dict[tuple[int, int], str]


def only(seen: Survey) -> tuple[str, CheckFact]:
    (check_fact,) = judge(seen, {})
    explained = explain(check_fact.fact)
    assert explained is not None, f"no rule explains: {sentence_of(check_fact.fact)}"
    return explained.cause, check_fact


@pytest.mark.parametrize("count", [2, 3, 4, 9])
def test_a_whole_network_gives_no_fact(count: int) -> None:
    assert judge(survey(count), {}) == []


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [("silent", "firewall-drops"), ("rejected", "firewall-rejects"), ("refused", "firewall-resets")],
)
@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_column_is_a_firewall_on_what_comes_in(count: int, outcome: str, cause: str) -> None:
    found, check_fact = only(survey(count, to_host(count, 1, outcome)))
    assert (found, check_fact.accused) == (cause, ("h1",))


def test_a_column_with_the_store_port_open_is_about_high_ports() -> None:
    found, check_fact = only(survey(3, to_host(3, 1, "silent"), given={1: "ok"}))
    assert (found, check_fact.accused) == ("firewall-ephemeral-ports", ("h1",))


def test_a_row_is_a_firewall_on_what_goes_out() -> None:
    found, check_fact = only(survey(4, from_host(4, 2, "silent")))
    assert (found, check_fact.accused) == ("one-way-block", ("h2",))
    assert sentence_of(check_fact.fact).startswith("What goes out of h2")


def test_a_row_whose_requests_arrive_is_a_firewall_on_what_comes_in() -> None:
    """A filter that keeps no state drops the answers too: all calls fail both ways, but those of the host arrive."""
    failing = {**to_host(3, 1, "silent"), **from_host(3, 1, "silent")}
    found, check_fact = only(survey(3, failing, arrived=((1, 0), (1, 2))))
    assert (found, check_fact.accused) == ("firewall-drops", ("h1",))


def test_a_host_that_nobody_reaches_and_that_reaches_nobody_is_cut_off() -> None:
    failing = {**to_host(4, 1, "no-neighbour"), **from_host(4, 1, "no-neighbour")}
    found, check_fact = only(survey(4, failing))
    assert (found, check_fact.accused) == ("host-unreachable", ("h1",))


def test_one_pair() -> None:
    found, check_fact = only(survey(4, {(1, 3): "silent", (3, 1): "silent"}))
    assert (found, set(check_fact.accused)) == ("pair-blocked", {"h1", "h3"})


def test_one_direction() -> None:
    found, check_fact = only(survey(4, {(1, 3): "silent"}))
    assert (found, set(check_fact.accused)) == ("one-way-block", {"h1", "h3"})
    assert "Calls from h1 to h3 are dropped" in sentence_of(check_fact.fact)


def test_one_direction_of_packets() -> None:
    """What h3 sends to h1 is lost: its calls do not arrive, and calls from h1 arrive but the answers do not."""
    found, check_fact = only(survey(4, {(1, 3): "silent", (3, 1): "silent"}, arrived=((1, 3),)))
    assert found in ("one-way-block", "pair-blocked")
    assert set(check_fact.accused) == {"h1", "h3"}


def test_two_parts() -> None:
    failing: Failing = {(one, other): "silent" for one in range(4) for other in range(4) if (one < 2) != (other < 2)}
    found, check_fact = only(survey(4, failing))
    assert (found, check_fact.accused) == ("network-partitioned", ())
    assert "(h0 and h1; h2 and h3)" in sentence_of(check_fact.fact)


def test_nobody_reaches_anybody() -> None:
    failing: Failing = {(one, other): "silent" for one in range(3) for other in range(3) if one != other}
    assert only(survey(3, failing))[0] == "all-hosts-blocked"


def test_address_translation_explains_what_does_not_come_in() -> None:
    seen = survey(3, to_host(3, 1, "silent"))
    seen.calls = [
        replace(one, local="192.168.5.2", saw="10.0.0.1") if one.source == 1 and one.kind == "mesh" else one
        for one in seen.calls
    ]
    found, check_fact = only(seen)
    assert (found, check_fact.accused) == ("behind-nat", ("h1",))


def test_address_translation_that_harms_nobody_is_no_finding() -> None:
    seen = survey(3)
    seen.calls = [replace(one, saw="10.0.0.1") if one.source == 1 and one.kind == "mesh" else one for one in seen.calls]
    assert judge(seen, {}) == []


def test_no_route_is_said_of_the_host_that_lacks_it() -> None:
    failing = {**from_host(3, 1, "no-route"), **to_host(3, 1, "silent")}
    found, check_fact = only(survey(3, failing))
    assert (found, check_fact.accused) == ("no-route", ("h1",))


def test_a_missing_family_of_addresses() -> None:
    seen = survey(3, from_host(3, 1, "no-route"))
    nodes = [replace(node(number), addresses=("fd00::1",)) if number == 1 else node(number) for number in range(3)]
    seen.nodes = nodes
    found, check_fact = only(seen)
    assert (found, check_fact.accused) == ("address-family-mixed", ("h1",))


def test_readable_rules_tell_what_goes_out_from_what_comes_in() -> None:
    seen = survey(2, {(1, 0): "silent"})
    seen.nodes = [node(0), node(1, closing=(("output", "tcp dport 1024-65535 drop"),))]
    found, check_fact = only(seen)
    assert (found, check_fact.accused) == ("one-way-block", ("h1",))
    assert check_fact.confidence == "confirmed"


def test_somebody_else_answers() -> None:
    seen = survey(3)
    seen.calls = [
        replace(one, peer="h2") if (one.source, one.target, one.kind) == (0, 1, "mesh") else one for one in seen.calls
    ]
    found, check_fact = only(seen)
    assert (found, check_fact.accused) == ("wrong-peer", ("h1",))


def test_large_messages_that_get_stuck_name_the_size_and_the_host() -> None:
    stuck = {(0, 1): "up", (1, 0): "up", (1, 2): "up", (2, 1): "down"}
    seen = survey(3, large=stuck)
    seen.sizes = {pair: {1460: "up", 1400: "up", 1360: "ok", 1000: "ok"} for pair in stuck}
    found, check_fact = only(seen)
    assert (found, check_fact.accused) == ("mtu-black-hole", ("h1",))
    assert "packets of up to 1400 bytes pass" in sentence_of(check_fact.fact)


def test_a_large_message_that_was_slow_once_is_no_finding() -> None:
    seen = survey(3, large={(0, 1): "up"})
    seen.sizes = {(0, 1): {1460: "ok", 1400: "ok", 500: "ok"}}
    assert judge(seen, {}) == []


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(2, 6),
    data=st.data(),
)
def test_whatever_fails_is_said_and_only_of_those_concerned(count: int, data: st.DataObject) -> None:
    pairs = [(one, other) for one in range(count) for other in range(count) if one != other]
    outcome = st.sampled_from(["silent", "refused", "rejected", "no-neighbour", "no-route", "reset", "mute"])
    failing = data.draw(st.dictionaries(st.sampled_from(pairs), outcome))
    check_facts = judge(survey(count, failing), {})
    assert bool(check_facts) == bool(failing)
    concerned = {f"h{number}" for pair in failing for number in pair}
    for check_fact in check_facts:
        assert {*check_fact.accused, *check_fact.harmed} <= concerned | (
            {f"h{n}" for n in range(count)} if check_fact.fact.id == "check.network-in-parts" else set()
        )
        assert explain(check_fact.fact) is not None, sentence_of(check_fact.fact)


def flows(seen: Survey, lost: dict[tuple[int, int], int], late: int = 0, each: int = 8) -> Survey:
    """Single calls for every pair, of which some got no answer, and some only when asked again."""
    for (source, target), call in list(seen.mesh().items()):
        for number in range(each):
            outcome = "silent" if number < lost.get((source, target), 0) else "ok"
            seconds = 1.0 if outcome == "ok" and number >= each - late else 0.01
            seen.calls.append(replace(call, kind="flow", outcome=outcome, seconds=seconds))
    return seen


def test_some_connections_of_a_host_vanish() -> None:
    found, check_fact = only(flows(survey(3), {(0, 1): 4, (2, 1): 3, (1, 0): 5, (1, 2): 2}))
    assert (found, check_fact.accused) == ("some-connections-vanish", ("h1",))


def test_a_port_that_said_no_to_one_of_several_calls_says_no() -> None:
    silent = {(0, 1): "silent", (2, 1): "silent"}
    seen = flows(survey(3, silent), dict.fromkeys(silent, 8))
    seen.calls = [
        replace(one, outcome="rejected") if one.kind == "flow" and number % 5 == 0 else one
        for number, one in enumerate(seen.calls)
    ]
    assert {pair for one in seen.of("flow") if one.outcome == "rejected" for pair in [(one.source, one.target)]} >= set(
        silent
    )
    assert only(seen)[0] == "firewall-rejects"


def test_where_some_vanish_a_single_call_that_failed_is_no_firewall() -> None:
    seen = flows(survey(3, {(0, 1): "silent"}), {(0, 1): 5, (2, 1): 4})
    assert only(seen)[0] == "some-connections-vanish"


def test_connections_that_are_only_late_are_not_said_to_vanish() -> None:
    assert judge(flows(survey(3), {(0, 1): 3}, late=4), {}) == []
    assert judge(flows(survey(3), {(0, 1): 2}), {}) == []  # too few to tell


def test_connections_vanish_by_chance_where_those_that_stand_lose_packets_too() -> None:
    seen = flows(survey(3), {(0, 1): 3, (1, 0): 2})
    drip = {"up": 20, "up_of": 500, "down": 15, "down_of": 500}
    for pair in ((0, 1), (0, 2), (1, 2)):
        seen.speeds[pair] = [{"outcome": "ok", "ping_us": 100, "drip": drip if 1 in pair else {}}]
    assert only(seen)[0] == "packet-loss"


def test_where_all_vanish_it_is_a_firewall() -> None:
    everything = {(0, 1): 8, (2, 1): 8}
    assert only(flows(survey(3, to_host(3, 1, "silent")), everything))[0] == "firewall-drops"


def test_the_port_of_a_task() -> None:
    seen = survey(3)
    seen.tasks = {1: [Task("worker", 1, "h1:2222")]}
    seen.listening[1] = {"ports": [*seen.listening[1]["ports"], {"port": 2222, "family": "ipv4", "given": True}]}
    seen.calls += [Called(source, 1, "task", "10.0.0.11", 2222, "silent") for source in (0, 2)]
    found, check_fact = only(seen)
    assert (found, check_fact.accused, check_fact.harmed) == ("firewall-task-port", ("h1",), ("h0", "h2"))


@pytest.mark.parametrize(
    ("peers", "proven"), [(("h0", "h0", "h0"), True), (("h0", "h0", "h2"), False), ((None, "h0", "h0"), False)]
)
@pytest.mark.parametrize("has_ranks", [True, False])
def test_a_store_that_is_reached_through_another_address(
    peers: tuple[str | None, ...], proven: bool, has_ranks: bool
) -> None:
    seen = survey(3)
    if not has_ranks:
        seen.nodes = [replace(one, stores=False) for one in seen.nodes]
    seen.calls += [
        Called(source, -1, "store", "10.9.9.9", 29500, "ok" if peer else "silent", peer=peer)
        for source, peer in enumerate(peers)
    ]
    assert (STORE_REACHED in proven_by(seen)) == proven
    strange = has_ranks and "h2" in peers  # rank 2 would meet itself
    assert [one.accused for one in judge(seen, {})] == ([("h2",)] if strange else [])


def test_horovods_driver_must_be_there_but_need_not_listen_yet() -> None:
    seen = survey(2)
    seen.calls += [Called(one, -1, "driver", "10.9.9.9", 41000, "refused") for one in (0, 1)]
    assert judge(seen, {}) == []
    seen = survey(2)
    seen.calls += [Called(one, -1, "driver", "10.9.9.9", 41000, "no-neighbour") for one in (0, 1)]
    assert only(seen)[0] == "rendezvous-address-nobody"


@pytest.mark.parametrize("count", [3, 4, 6])
def test_two_closed_hosts_are_two_columns_not_a_row(count: int) -> None:
    seen = survey(count, to_host(count, 1, "silent") | to_host(count, 2, "silent"))
    found = judge(seen, {})
    assert [one.accused for one in found] == [("h1",), ("h2",)]
    assert all((explained := explain(one.fact)) is not None and explained.cause == "firewall-drops" for one in found)


@pytest.mark.parametrize("outcome", ["mute", "closed", "foreign"])
def test_a_hardware_address_given_twice_makes_no_foreign_service(outcome: str) -> None:
    """The one host accepts the connection, and what follows goes to the other."""
    seen = survey(3)
    seen.calls.append(Called(1, -1, "store", "10.0.0.10", 29500, outcome))
    macs = {"h0": "02:00:00:00:00:01", "h1": "02:00:00:00:00:02", "h2": "02:00:00:00:00:01"}
    cloned = {label: host_facts(label, {}, {"eth0": interface(mac=mac)}) for label, mac in macs.items()}
    assert judge(seen, cloned) == []
    assert only(seen)[0] == "foreign-service-on-port"


@pytest.mark.parametrize("only_gloo", [True, False])
def test_only_gloo_never_calls_the_highest_address(only_gloo: bool) -> None:
    seen = survey(3, to_host(3, 2, "silent"))
    seen.only_gloo = only_gloo
    assert only(seen)[1].by_luck == only_gloo
    assert not only(survey(3, to_host(3, 1, "silent")))[1].by_luck
