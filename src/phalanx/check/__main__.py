"""`torchrun … -m phalanx.check`: this rank takes part in a check. The same as `phalanx check`."""

import sys
from importlib import import_module

if __name__ == "__main__":
    sys.argv = ["phalanx", "check", *sys.argv[1:]]
    import_module("phalanx.cli").main()  # the command line stands above this package, so it is not imported by name
