"""Lints of variables, one file each: `examine(all_facts, options)` yields facts. Found by scanning.

Training scripts are read by `phalanx.lint`.
"""
