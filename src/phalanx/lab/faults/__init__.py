"""One file, one fault."""
