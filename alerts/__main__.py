"""`python -m alerts`."""

import sys

from alerts.cli import main

sys.exit(main())
