"""`python -m collector`: the same as `firsttoken collector`."""

import sys

from collector.cli import main

if __name__ == "__main__":
    sys.exit(main())
