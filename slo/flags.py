"""What all command lines share (DESIGN 4.1, 4.7): one line for bad usage, and a variable for each flag."""

import argparse
from importlib.metadata import version
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, and exits with 2; its subcommands do the same."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def add_version(self) -> None:
        """A `--version` that prints the release."""
        self.add_argument("--version", action="version", version=f"firsttoken {version('firsttoken')}")


def variable(flag: str) -> str:
    """The environment variable that stands in for a flag: `FIRSTTOKEN_EVAL_INTERVAL` for `--eval-interval`."""
    return f"FIRSTTOKEN_{flag.lstrip('-').replace('-', '_').upper()}"
