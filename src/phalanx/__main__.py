"""`python -m phalanx`: the same as the command."""

from phalanx.cli import main

if __name__ == "__main__":
    main()
