"""Distributed training as a function call: the decorator, the call that is under way, and how it fails."""
