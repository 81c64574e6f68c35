"""The command line: whatever ends a command early, as one message and an exit code, never as a traceback.

2: what was given is refused. 1: the machine did not give what was needed (disk, memory, a process). 130: interrupted by
Ctrl-C.
"""

import errno
import os
import signal
import sys
from _thread import interrupt_main
from types import FrameType
from typing import Any

from r2n.errors import ProcessError, R2NError, is_out_of_memory

REFUSED, FAILED, INTERRUPTED = 2, 1, 130
NO_MEMORY = "the machine gives no more memory"
_SOON = 0.01  # seconds
_PATIENCE = 2  # interrupts before the process ends at once

_interrupts = 0
_is_told = False


def failure(error: BaseException) -> tuple[str, int] | None:
    """What to say of an error, and the exit code; None where it is none of these."""
    global _is_told
    if _interrupts or isinstance(error, KeyboardInterrupt):  # libraries make other errors of it
        _is_told = True
        return "interrupted", INTERRUPTED
    if isinstance(error, R2NError):
        return f"error: {error}", FAILED if isinstance(error, ProcessError) else REFUSED
    if is_out_of_memory(error):
        notes = getattr(error, "__notes__", [])
        hint = "ask for less, or see what needs how much: r2n train --memory SIZE refuses it before it is taken"
        return f"error: {'; '.join([NO_MEMORY, *notes])}\n  {hint}", FAILED
    if isinstance(error, OSError) and error.errno != errno.EPIPE:
        return f"error: {_about(error)}", FAILED
    return None


def _about(error: OSError) -> str:
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{what}\n  make room, and go on with --resume where a run was trained: its last checkpoint is whole"
    return what


def tell_interrupt(code: object) -> None:
    """Say what ended the program where nobody has: before a command begins, and after its end."""
    if code == INTERRUPTED and not _is_told:
        sys.stderr.write("interrupted\n")


def watch_interrupts() -> None:
    """From now on Ctrl-C is remembered, whatever a library makes of it; the third ends the process at once."""
    forget_interrupts()
    signal.signal(signal.SIGINT, _interrupt)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _interrupt)
    sys.unraisablehook = _unraisable


def forget_interrupts() -> None:
    """What was interrupted is over, and the command goes on: the next Ctrl-C is the first again."""
    global _interrupts, _is_told
    _interrupts, _is_told = 0, False


_is_told = False


def _interrupt(_: int, __: FrameType | None) -> None:
    global _interrupts
    _interrupts += 1
    if _interrupts == 1:
        raise KeyboardInterrupt
    if _interrupts > _PATIENCE:
        os._exit(INTERRUPTED)


def _unraisable(unraisable: Any) -> None:
    """An interrupt in a place that cannot raise, as the end of an object, comes again when that is left."""
    global _interrupts
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        _interrupts = 0
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, _SOON)  # here, too, it would be lost
        else:
            interrupt_main()
    elif not _interrupts:
        sys.__unraisablehook__(unraisable)
