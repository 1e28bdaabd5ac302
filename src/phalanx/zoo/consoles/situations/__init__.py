"""Faults played in a simulated job; a module added here adds its situations."""
