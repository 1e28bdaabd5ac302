"""Readers of collective traces. One file here is one reader (`NAME`, `recognises`, `read`); it is found by scanning."""
