"""Stands in front of each child process: ties its life to its parent's, then becomes the child.

    python tether.py PARENT_PID PROGRAM [ARGUMENT ...]

Linux kills a tethered process when its parent is gone, however the parent went (prctl(2), PR_SET_PDEATHSIG, which
outlives exec). Elsewhere there is no such tie, and the parent's own ending of its children must do. This runs as a
file, without site packages, so it imports nothing of ours.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tie(parent_pid: int) -> bool:
    """Ask to be killed with the parent; whether the parent is still there to be tied to."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == parent_pid  # the parent may have gone before the tie was made


def main(argv: list[str]) -> int:
    """Become the program; returns only when that can't be."""
    parent_pid, program, *arguments = argv
    if not tie(int(parent_pid)):
        return 1
    try:
        os.execvp(program, [program, *arguments])  # noqa: S606  becoming the child is the purpose
    except OSError as error:
        print(f"{program} cannot be started: {error.strerror}", file=sys.stderr)
    return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
