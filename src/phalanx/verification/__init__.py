"""`phalanx verify`: finds training that runs and is wrong, from fingerprints that an observer in each rank writes."""
