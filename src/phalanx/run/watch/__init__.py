"""Looks at running ranks from outside and inside: samples, heartbeats, stalls, deaths, stragglers."""

from phalanx.run.watch.watch import Watch

__all__ = ["Watch"]
