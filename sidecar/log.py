"""The log: one line an event on stderr, as text or as JSON.

A text line has its traceback behind it; as JSON the traceback is a field, so that a line stays a line.
"""

import json
import logging
import sys
import time

from sidecar.settings import UsageError

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        line = {"at": stamp, "level": record.levelname.lower(), "program": self._program}
        line["message"] = record.getMessage()
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up(program: str, *, level: str, form: str) -> None:
    """Log to stderr, each line under the program's name. Raises UsageError."""
    if level not in LEVELS:
        raise UsageError(f"--log-level {level} is unknown: use debug, info, warning or error")
    if form not in FORMATS:
        raise UsageError(f"--log-format {form} is unknown: use text or json")
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter(f"{program}: %(levelname)s: %(message)s")
    handler.setFormatter(JsonLines(program) if form == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
