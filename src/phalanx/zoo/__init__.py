"""The fault zoo: real, runnable faults, read from their folders, run and recorded."""
