"""What is fuzzed: a reader as a function of bytes, and what an input may do to it.

A reader answers, or raises an R2NError. Anything else is a finding: another exception, more than 2 seconds of the
processor, more than half a gigabyte; and a process of more than 1 GB, where it does nothing else.
"""

import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from r2n.errors import R2NError

CORPUS = Path(__file__).parent / "corpus"
MOST_SECONDS = 2.0
MOST_BYTES = 2**29  # of an input
MOST_IN_ALL = 2**30  # of a process that does nothing else
ITSELF = Path("/proc/self")
OPENED = ExitStack()  # what readers need and who runs them closes: a folder, a server


@dataclass(frozen=True)
class Target:
    """A reader, and what inputs for it are made of.

    `tokens` are pieces of the language it reads. Seeds are the files in the corpus under its name (or under that of the
    target whose corpus it `shares`), and what `made` makes: binary files, and files too long to keep. `hard` are whole
    inputs that are tried as they are. Of a campaign of a million inputs, about `inputs` are this target's; those of
    atheris have at most `longest` bytes. The tests try `examples`.
    """

    name: str
    read: Callable[[bytes], object]
    tokens: Sequence[bytes]
    hard: Sequence[bytes] = ()
    made: Callable[[], Sequence[bytes]] = tuple
    shares: str | None = None
    inputs: int = 10_000
    examples: int = 300
    longest: int = 1_000

    def seeds(self) -> list[bytes]:
        kept = [path.read_bytes() for path in sorted((CORPUS / (self.shares or self.name)).glob("*"))]
        return [*kept, *self.made()]

    def ready(self) -> list[bytes]:
        """The seeds, once read: what a reader makes or loads at its first use is no input's time."""
        seeds = self.seeds()
        for content in seeds:
            with suppress(R2NError):
                self.read(content)
        return seeds

    def try_on(self, content: bytes, seconds: float = MOST_SECONDS) -> None:
        """Give it an input; what it may not do is raised."""
        before = _peak_from_now()
        with _seconds_of_processor(seconds):
            try:
                self.read(content)
            except R2NError as error:
                str(error)
        taken = _peak() - before
        if taken > MOST_BYTES:
            raise TooLargeError(f"the process has grown by {taken:,} bytes")


class TooSlowError(BaseException):
    """An input takes too long; no reader can hold this back by an `except Exception`."""


class TooLargeError(Exception):
    """An input takes too much memory."""


def check_process() -> None:
    """What inputs leave behind does not add up."""
    if _peak() > MOST_IN_ALL:
        raise TooLargeError(f"the process has grown to {_peak():,} bytes")


def _peak() -> int:
    """The bytes that this process has held at most."""
    (kilobytes,) = re.findall(r"VmHWM:\s*(\d+) kB", (ITSELF / "status").read_text())
    return int(kilobytes) * 1024


def _peak_from_now() -> int:
    """What it holds now: whatever it held before, for other tests, is forgotten."""
    with suppress(OSError):  # where a container forbids that, an input may take what another has taken before
        (ITSELF / "clear_refs").write_text("5")
    return _peak()


@contextmanager
def _seconds_of_processor(most: float) -> Iterator[None]:
    """Of all threads of the process; the clock on the wall would measure how busy the machine is."""

    def stop(_: int, frame: FrameType | None) -> None:
        raise TooSlowError(f"more than {most} seconds")

    earlier = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)


@cache
def scratch() -> Path:
    """A folder for readers of files."""
    return Path(OPENED.enter_context(TemporaryDirectory(prefix="fuzzing-")))


def written(name: str, content: bytes) -> Path:
    path = scratch() / name
    path.write_bytes(content)
    return path


def as_text(content: bytes) -> str:
    """For readers of text; that bytes are no UTF-8 is told before them."""
    return content.decode("utf-8", errors="replace")
