"""Looks at running ranks from outside and inside: samples, heartbeats, stalls, deaths, stragglers."""
