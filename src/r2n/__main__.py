"""The program `r2n`, which may be interrupted from its first import on."""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        signal.signal(signal.SIGINT, _end_at_once)
        from r2n.cli import main as run

        run()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
    finally:
        for name in {"SIGINT", "SIGALRM"} & {*dir(signal)}:  # what was done is done, and its exit code stands
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def _end_at_once(_: int, __: FrameType | None) -> None:
    """While modules are loaded nothing is lost, and a library may make another error of a KeyboardInterrupt."""
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
