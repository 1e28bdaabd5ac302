"""The verbs as Python functions; the public names are in `phalanx` itself."""
