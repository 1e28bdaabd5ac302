"""Where the driver listens."""

import pytest

from phalanx.remote.addresses import addresses_at, network_host


def test_an_address_of_this_machine_that_nodes_are_told_is_the_one_it_listens_at() -> None:
    assert network_host("127.0.0.1") == "127.0.0.1"


def test_a_name_that_leads_in_from_elsewhere_is_no_address_to_listen_at() -> None:
    assert network_host("driver.example") == "0.0.0.0"


def test_the_users_own_choice_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHALANX_DRIVER_HOST", "127.0.0.2")
    assert network_host("127.0.0.1") == "127.0.0.2"


def test_nodes_are_told_where_it_listens() -> None:
    assert addresses_at("127.0.0.1", 81) == "127.0.0.1:81"
