"""The environments of the zoo: every fault has one, and making one is done once."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from phalanx.zoo import environments
from phalanx.zoo.environments import ENVIRONMENTS, Environment, environment_of, make, versions
from phalanx.zoo.fault import Cure, Fault, FaultError, Needs, RunPlan
from phalanx.zoo.reading import load_zoo

ZOO = Path(__file__).resolve().parents[2] / "faults"
FAULT = Fault(Path("torch-x"), "t", "torch", True, "train", RunPlan("python", ("python",), 1, 10.0, "merged"))


def test_every_fault_and_every_cure_has_an_environment() -> None:
    faults = [*load_zoo(ZOO), *load_zoo(ZOO / "silent")]
    needed = {environment_of(fault, cured=cured).name for fault in faults for cured in (False, True)}
    assert needed == {environment.name for environment in ENVIRONMENTS}, "none is without a fault that needs it"


def test_the_smallest_is_taken() -> None:
    assert environment_of(replace(FAULT, needs=Needs(python=("torch==2.13.0",)))).name == "torch"
    assert environment_of(replace(FAULT, needs=Needs(python=("torch==2.13.0", "horovod==0.28.1")))).name == "horovod"
    assert len({one.name for one in ENVIRONMENTS}) == len(ENVIRONMENTS)


def test_what_nobody_provides_is_said() -> None:
    with pytest.raises(FaultError, match=r"no environment of the zoo provides all of torch==1\.0"):
        environment_of(replace(FAULT, needs=Needs(python=("torch==1.0",))))
    with pytest.raises(FaultError, match="no environment 'moon'; it is one of torch"):
        environment_of(replace(FAULT, cure=Cure(environment="moon")), cured=True)


def test_an_environment_is_made_once(tmp_path: Path) -> None:
    said: list[str] = []
    empty = Environment("empty", ("pip",))
    made = make(empty, tmp_path, said.append)
    assert (made / "bin" / "python").exists()
    assert len(said) == 1
    make(empty, tmp_path, said.append)
    assert len(said) == 1
    fault = replace(FAULT, needs=Needs(python=("pip",)))
    assert list(versions(made, fault)) == ["pip"]


def test_two_that_want_the_same_environment_make_it_once(tmp_path: Path) -> None:
    said: list[str] = []
    empty = Environment("empty", ("pip",))
    with ThreadPoolExecutor(2) as pool:
        made = set(pool.map(lambda _: make(empty, tmp_path, said.append), range(2)))
    assert made == {tmp_path / "empty"}
    assert sorted(said) == [
        "making the environment empty: pip",
        "waiting for the environment empty, which another process makes",
    ]


def test_a_package_that_cannot_be_had_is_said(tmp_path: Path) -> None:
    with pytest.raises(FaultError, match=r"pip.* failed:"):
        make(Environment("bad", (str(tmp_path / "no-such-package"),)), tmp_path, lambda _: None)


def test_packages_that_another_environment_has_are_lent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lender = Environment("lender", ("pip",))
    monkeypatch.setitem(environments._BY_NAME, "lender", lender)
    make(lender, tmp_path, lambda _: None)
    site = next((tmp_path / "lender").glob("lib/python3*/site-packages"))
    (site / "only_there.py").write_text("")
    made = make(Environment("borrower", ("pip",), lenders=("horovod", "lender")), tmp_path, lambda _: None)
    told = subprocess.run(
        [made / "bin" / "python", "-c", "import only_there, sys; print(only_there.__file__, sys.prefix)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == [str(site / "only_there.py"), str(made)]
    asked = subprocess.run([made / "bin" / "pip", "--version"], capture_output=True, text=True, check=True)
    assert str(site) in asked.stdout
    assert list(versions(made, replace(FAULT, needs=Needs(python=("pip",))))) == ["pip"]
