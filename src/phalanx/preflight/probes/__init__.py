"""Comparisons of facts, one file each: `examine(witnesses, options)` yields readings. Found by scanning."""
