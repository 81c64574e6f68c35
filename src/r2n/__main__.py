"""The program `r2n`, which may be interrupted from its first import on."""

import signal
import sys


def main() -> None:
    """Run the command line."""
    try:
        from r2n.cli import main as run

        run()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
