"""The command ``polity``: the command line of the Rust library in this package."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command line of this process, and ends the process with its exit code."""
    from ._polity import command

    # The command line has handlers of its own where it can finish and save; elsewhere Ctrl-C ends it, as it ends a program without
    # Python. A process that ignores the signal (nohup) keeps ignoring it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(command(sys.argv[1:]))
