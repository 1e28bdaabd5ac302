"""Runs a command under a filter that refuses what py-spy needs, as container engines do by default: `python forbidding.py COMMAND…`."""

import ctypes
import os
import platform
import struct
import sys

NUMBERS = {"x86_64": (0xC000003E, 101, 310), "aarch64": (0xC00000B7, 117, 270)}  # ptrace, process_vm_readv
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
LOAD, JUMP, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050001  # EPERM


def forbid() -> None:
    """For this process and all that it starts."""
    architecture, *calls = NUMBERS[platform.machine()]
    rows = [(LOAD, 0, 0, 4), (JUMP, 0, 3, architecture), (LOAD, 0, 0, 0)]
    rows += [(JUMP, 2, 0, calls[0]), (JUMP, 1, 0, calls[1]), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    code = b"".join(struct.pack("HBBI", *row) for row in rows)
    program = struct.pack("HP", len(rows), ctypes.addressof(kept := ctypes.create_string_buffer(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SECCOMP, FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "the filter is refused")
    del kept


if __name__ == "__main__":
    forbid()
    os.execvp(sys.argv[1], sys.argv[1:])
