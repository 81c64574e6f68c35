"""Who decides: the peak memory of a piece of work."""

import resource
import sys
from pathlib import Path

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def forget_peak() -> None:
    """Begin to measure anew, where the system can; else the peak is that of the whole process."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return


def peak_gigabytes() -> float:
    """The most memory the process has held since `forget_peak`, in GB."""
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e9
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
