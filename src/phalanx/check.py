"""`torchrun … -m phalanx.check`: this rank takes part in a check. The same as `phalanx check`.

Only for `python -m`: in Python, `phalanx.check` is the function.
"""

import sys
from importlib import import_module

if __name__ == "__main__":
    sys.argv = ["phalanx", "check", *sys.argv[1:]]
    import_module("phalanx.cli").main()
