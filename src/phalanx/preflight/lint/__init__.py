"""Lints of variables, one file each: `examine(witnesses, options)` yields readings. Found by scanning.

Training scripts are read by `phalanx.lint`.
"""
