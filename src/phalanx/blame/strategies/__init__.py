"""One file for each way to find the rank to blame; the engine asks them by their ORDER.

A strategy is a pure function of the table. It returns an accusation, an accusation of nobody where the evidence says that
no rank can be singled out, or None where it does not apply.
"""
