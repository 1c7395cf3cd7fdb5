"""`llama-server` for the commands of docs/attach/llamacpp.md: the wheel has llama.cpp's server without a command line.

Only flags that the page uses are known, each with the meaning it has there; any other ends it.
"""

import argparse
from pathlib import Path

from tests.engines.llamacpp_server import serve


def main() -> None:
    """Serve as asked, until standard input ends."""
    parser = argparse.ArgumentParser("llama-server", allow_abbrev=False)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--metrics", action="store_true")
    parser.add_argument("--slots", action="store_true")
    args = parser.parse_args()
    serve(args.model, args.port, args.parallel, metrics=args.metrics, tell_slots=args.slots)


if __name__ == "__main__":
    main()
