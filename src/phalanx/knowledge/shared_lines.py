"""Expressions that several rules look for, by name: `shared = "package-build-failed"` instead of `line = '…'`."""

from __future__ import annotations

_BUILD = (
    "Failed building wheel for|Could not build wheels for|Failed to build installable wheels|metadata-generation-failed|"
    "subprocess-exited-with-error|Command errored out with exit status|failed with error code -?\\d+ in |"
    "plugins were built\\. See errors above|Configuring incomplete, errors occurred|get_requires_for_build_wheel|failed, is it installed"
)
SHARED_LINES = {
    "package-build-failed": _BUILD,
    "package-build-failed-below-pip": f"{_BUILD}|originates from a subprocess, and is likely not a problem with pip",
    "pip-build-folder": r'File "\S{0,80}pip-(?:install|build|req-build)-',
    "module-partially-initialised": "partially initialized module",
    "segmentation-fault": r"(?i)segmentation fault|signal 11\b|SIGSEGV",
    "python-frame": r'File "[^"]+", line \d+',
    "horovod-shut-down": "Horovod has been shut down",
    "gloo-connection-closed": "Connection closed by peer",
}
