"""The job's settings, installed on the first node only."""

LEARNING_RATE = 0.05
