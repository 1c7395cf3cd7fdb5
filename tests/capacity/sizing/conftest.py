"""The simulated servers of bench/ grade the search here too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "bench"))
