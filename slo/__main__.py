"""`python -m slo`."""

import sys

from slo.cli import main

sys.exit(main())
