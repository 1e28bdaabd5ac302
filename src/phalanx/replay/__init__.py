"""Record and replay: what a job's collectives gave and got, any rank again alone, and where two runs part."""
