"""An sshd of the tests' own."""

from tests.calls.conftest import ssh_config

__all__ = ["ssh_config"]
