"""Lints of variables: what is found, and what must not be."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.preflight.check_fact import CheckFact
from phalanx.preflight.lint import contradictions, debug_detail, gloo_syntax, misparsed, misspelt, stray_characters
from phalanx.preflight.options import CheckOptions
from phalanx.preflight.variables import known_names, load_tables
from phalanx.preflight.variables.installed import installed_names
from tests.preflight.made import host_facts, interface, summary_of

OPTIONS = CheckOptions()


def texts(module: object, *all_facts: object) -> list[str]:
    found = module.examine(all_facts, OPTIONS)  # type: ignore[attr-defined]
    return [summary_of(item) for item in found if isinstance(item, CheckFact)]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NCCL_SOCKET_IFNAM", "NCCL_SOCKET_IFNAME"),
        ("OMPI_MCA_btl_tcp_if_includ", "OMPI_MCA_btl_tcp_if_include"),
        ("OMPI_MCA_plm_rsh_agnet", "OMPI_MCA_plm_rsh_agent"),
        ("NCLL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"),
        ("NCCL_SOCKET_IF_NAME", "NCCL_SOCKET_IFNAME"),
        ("nccl_socket_ifname", "NCCL_SOCKET_IFNAME"),
        ("NCCL_IFNAME_SOCKET", "NCCL_SOCKET_IFNAME"),
        ("NCCL_IB_DISABLED", "NCCL_IB_DISABLE"),
        ("GLOO_SOCKET_IFNAMES", "GLOO_SOCKET_IFNAME"),
        ("GLO_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"),
        ("MASTER_ADR", "MASTER_ADDR"),
        ("MASTER_ADDRESS", None),
        ("MASTERADDR", "MASTER_ADDR"),
        ("GLOO_SOCKET_IFACE", "GLOO_SOCKET_IFNAME"),
        ("NCCL_SOCKET_INTERFACE", "NCCL_SOCKET_IFNAME"),
        ("MASTER_PROT", "MASTER_PORT"),
        ("WORLDSIZE", "WORLD_SIZE"),
        ("WOLRD_SIZE", "WORLD_SIZE"),
        ("TF_CONIFG", "TF_CONFIG"),
        ("HOROVOD_FUSION_TRESHOLD", "HOROVOD_FUSION_THRESHOLD"),
        ("TORCH_DISTRIBUTED_DEBUGG", "TORCH_DISTRIBUTED_DEBUG"),
        ("CUDA_VISIBLE_DEVICE", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_a_slip_of_the_hand_is_seen(name: str, meant: str | None) -> None:
    assert misspelt.meant_by(name, {name}) == meant


@pytest.mark.parametrize(
    "name",
    [
        "NCCL_VERSION",
        "NCCL_HOME",
        "TF_CLI_CONFIG_FILE",
        "PYTHONPATH",
        "LOCAL_DATA",
        "RANK",
        "SLURM_NODELIST",
        "HOSTNAME",
        "TORCH_HOME",
        "NCCL_FASTRAK_IFNAME",
        "NODE_EXTRA_CA_CERTS",
        "MASTER_KEY",
        "WORLD",
        "TF_VAR_region",
        "NCCL_P2P_DISABLE",
        "PORT",
        "SOCKET_PATH",
        "DEBUG",
    ],
)
def test_other_names_are_left_alone(name: str) -> None:
    assert misspelt.meant_by(name, {name}) is None


def test_a_slip_beside_the_right_name_is_somebody_elses_variable() -> None:
    assert misspelt.meant_by("MASTER_ADDRS", {"MASTER_ADDRS", "MASTER_ADDR"}) is None


def test_the_fact_says_who_reads_what() -> None:
    said = texts(
        misspelt, host_facts("h1", {"NCCL_SOCKET_IFNAM": "eth0"}), host_facts("h2", {"NCCL_SOCKET_IFNAM": "eth0"})
    )
    assert said == ["NCCL_SOCKET_IFNAM on h1 and h2 is read by nothing; NCCL reads NCCL_SOCKET_IFNAME."]


@given(st.text(alphabet="ABCDE_", max_size=9), st.text(alphabet="ABCDE_", max_size=9))
def test_distance_is_one(first: str, second: str) -> None:
    away = misspelt.distance(first, second)
    assert away == misspelt.distance(second, first)
    assert (away == 0) == (first == second)
    assert away <= max(len(first), len(second), 4)


@given(st.text(alphabet="0123456789xXabtrue +-.", min_size=1, max_size=8))
def test_numbers_are_read_as_the_c_library_reads_them(value: str) -> None:
    strtoll = ctypes.CDLL(None).strtoll
    strtoll.restype = ctypes.c_longlong
    parsed = misparsed._as_number(value, 0)
    real = strtoll(value.encode(), None, 0)
    if parsed is not None:
        assert parsed == real
    else:
        assert int(value.strip().lstrip("+"), 0 if not value.strip().lstrip("+-").lstrip("0").isdigit() else 10) == real


@pytest.mark.parametrize(
    ("name", "value", "parsed"),
    [
        ("NCCL_IB_DISABLE", "true", 0),
        ("NCCL_P2P_DISABLE", "yes", 0),
        ("NCCL_BUFFSIZE", "8M", 8),
        ("NCCL_IB_TIMEOUT", "'22'", 0),
        ("HOROVOD_FUSION_THRESHOLD", "64MB", 64),
        ("HOROVOD_HIERARCHICAL_ALLREDUCE", "True", 0),
    ],
)
def test_values_that_are_read_as_something_else(name: str, value: str, parsed: int) -> None:
    library = "NCCL" if name.startswith("NCCL") else "Horovod"
    assert texts(misparsed, host_facts("h1", {name: value})) == [
        f"{name}={value} on h1 is read by {library} as {parsed}."
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL_IB_DISABLE", "1"),
        ("NCCL_IB_DISABLE", "0"),
        ("NCCL_IB_TC", "0x10"),
        ("NCCL_DEBUG", "info"),
        ("NCCL_P2P_LEVEL", "NVL"),
        ("NCCL_IB_GID_INDEX", "-1"),
        ("NCCL_IB_HCA", "mlx5_0"),
        ("HOROVOD_CYCLE_TIME", "3.5"),
        ("TORCH_DISTRIBUTED_DEBUG", "detail"),
    ],
)
def test_good_values_are_left_alone(name: str, value: str) -> None:
    assert texts(misparsed, host_facts("h1", {name: value})) == []


def test_a_component_of_open_mpi_that_is_misspelt() -> None:
    (found,) = texts(misparsed, host_facts("h1", {"OMPI_MCA_btl": "^self,tpc"}))
    assert found.startswith("OMPI_MCA_btl=^self,tpc on h1: Open MPI has no tpc; it knows self, tcp,")
    (fact,) = misparsed.examine([host_facts("h1", {"OMPI_MCA_btl": "^self,tpc"})], CheckOptions())
    assert isinstance(fact, CheckFact)
    assert fact.fact.fields["right"] == "^self,tcp"


@pytest.mark.parametrize("value", ["tcp,self,vader", "^openib", "vendor_btl", "ob1"])
def test_components_that_are_right_or_of_a_vendor_are_left_alone(value: str) -> None:
    assert texts(misparsed, host_facts("h1", {"OMPI_MCA_btl": value})) == []


@pytest.mark.parametrize("name", ["OMPI_btl_tcp_if_include", "MCA_btl_tcp_if_include"])
def test_a_parameter_of_open_mpi_without_its_prefix(name: str) -> None:
    assert misspelt.meant_by(name, {name}) == "OMPI_MCA_btl_tcp_if_include"
    assert misspelt.meant_by("OMPI_COMM_WORLD_RANK", set()) is None


def test_words_outside_of_a_closed_list() -> None:
    said = texts(misparsed, host_facts("h1", {"TORCH_DISTRIBUTED_DEBUG": "VERBOSE"}))
    assert said == ["TORCH_DISTRIBUTED_DEBUG=VERBOSE on h1: PyTorch has no such value; it knows OFF, INFO, DETAIL."]


@pytest.mark.parametrize("value", ["10.0.0.1\r", " 10.0.0.1", '"10.0.0.1"'])
def test_stray_characters(value: str) -> None:
    assert len(texts(stray_characters, host_facts("h1", {"MASTER_ADDR": value}))) == 1
    assert texts(stray_characters, host_facts("h1", {"MASTER_ADDR": "10.0.0.1", "XLA_FLAGS": " --a --b"})) == []


def test_nccl_syntax_for_gloo_comes_with_the_name_to_write() -> None:
    one = host_facts("h1", {"GLOO_SOCKET_IFNAME": "^docker0,lo"})
    found = list(gloo_syntax.examine([one], OPTIONS))
    assert isinstance(found[0], CheckFact)
    assert found[0].fact.fields["right"] == "eth0"
    assert texts(gloo_syntax, host_facts("h1", {"GLOO_SOCKET_IFNAME": "eth0", "NCCL_SOCKET_IFNAME": "^docker0"})) == []


def test_detail_is_only_dangerous_where_it_is_known_to_be() -> None:
    crashing = {"python": "3.11", "packages": {"torch": "2.13.0+cpu"}}
    assert len(texts(debug_detail, host_facts("h1", {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}, versions=crashing))) == 1
    assert texts(debug_detail, host_facts("h1", {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})) == []
    assert texts(debug_detail, host_facts("h1", {"TORCH_DISTRIBUTED_DEBUG": "INFO"}, versions=crashing)) == []


@pytest.mark.parametrize(
    ("variables", "word"),
    [
        ({"NCCL_IB_DISABLE": "1", "NCCL_IB_HCA": "mlx5_0"}, "switches off"),
        ({"NCCL_NET": "IB"}, "wants InfiniBand"),
        ({"NCCL_SOCKET_FAMILY": "AF_INET6"}, "no such address"),
        ({"OMPI_MCA_btl_tcp_if_include": "eth0", "OMPI_MCA_btl_tcp_if_exclude": "lo"}, "both set"),
        ({"OMP_NUM_THREADS": "auto"}, "not a number of threads"),
        ({"UCX_TLS": "sm,self"}, "no transport between hosts"),
        ({"OMPI_MCA_btl": "self,vader"}, "no transport between hosts"),
    ],
)
def test_contradictions(variables: dict[str, str], word: str) -> None:
    said = texts(contradictions, host_facts("h1", variables), host_facts("h2", variables))
    assert len(said) == 1
    assert word in said[0]


def test_settings_for_one_machine_are_right_on_one_machine() -> None:
    variables = {
        "UCX_TLS": "sm,self",
        "OMPI_MCA_btl": "self,vader",
        "NCCL_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "4,2",
    }
    assert texts(contradictions, host_facts("h1", variables)) == []
    ipv6 = {"lo": interface("::1/128", loopback=True), "eth0": interface("fd00::1/64")}
    assert texts(contradictions, host_facts("h1", {"NCCL_SOCKET_FAMILY": "AF_INET6"}, ipv6)) == []


def test_the_shipped_tables_are_whole() -> None:
    assert {table.library for table in load_tables()} >= {"NCCL", "PyTorch", "Horovod", "TensorFlow", "UCX"}
    for table in load_tables():
        assert table.integers <= table.names, table.library
        assert set(table.choices) <= table.names, table.library
    assert known_names()["NCCL_SOCKET_IFNAME"] == "NCCL"
    assert known_names()["GLOO_SOCKET_IFNAME"] == "PyTorch"


def test_installed_libraries_are_asked_and_remembered(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="pip install torch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    installed_names.cache_clear()
    first = installed_names()
    assert {"GLOO_SOCKET_IFNAME", "TORCH_DISTRIBUTED_DEBUG", "NCCL_BLOCKING_WAIT"} <= first
    installed_names.cache_clear()
    monkeypatch.setattr("phalanx.preflight.variables.installed.read_only_data", lambda path: pytest.fail("read again"))
    assert installed_names() == first
    installed_names.cache_clear()
