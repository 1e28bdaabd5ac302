"""Comparisons of facts, one file each: `examine(all_facts, options)` yields facts. Found by scanning."""
