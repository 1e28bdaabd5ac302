"""A verdict on a job that runs now, whoever started it: find its ranks, look at them from outside, and judge."""
