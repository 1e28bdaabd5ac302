"""The empirical study behind Phalanx: its labels folded into ids, its figures computed."""
