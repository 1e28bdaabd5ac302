"""Phalanx for assistants: a Model Context Protocol server over standard input and output."""
