"""Differences between here and a node are told one by one."""

from __future__ import annotations

from phalanx.remote.agreement import differences, interpreter, needed_packages, versions_of


def test_the_same_agrees() -> None:
    here = interpreter()
    assert differences(here, dict(here), {"psutil": "6"}, {"psutil": "6"}) == []


def test_a_patch_release_of_python_does_not_matter_a_minor_one_does() -> None:
    here = {**interpreter(), "python": "3.11.4"}
    assert differences(here, {**here, "python": "3.11.9"}, {}, {}) == []
    assert differences(here, {**here, "python": "3.12.0"}, {}, {}) == ["python is 3.12.0 there and 3.11.4 here"]


def test_packages_are_named_with_both_versions() -> None:
    here = interpreter()
    told = differences(here, here, {"torch": "2.13.0", "numpy": "2.0"}, {"torch": "2.4.0", "numpy": None})
    assert told == ["torch is 2.4.0 there and 2.13.0 here", "numpy is missing there (2.0 here)"]


def test_needed_packages_are_those_that_the_code_names() -> None:
    found = needed_packages("none", {"psutil", "json", "phalanx.model", "cloudpickle.cloudpickle", "no_such_module"})
    assert set(found) == {"psutil"}
    assert versions_of(found) == found
    assert versions_of(["no-such-distribution"]) == {"no-such-distribution": None}
