"""A process that has ended already, as those see it who began it."""

import os
from multiprocessing.process import BaseProcess


class EndedProcess(BaseProcess):
    """It ended with a code, or (below zero) by a signal."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.end, write = os.pipe()
        os.close(write)  # so that its end is heard

    @property
    def exitcode(self) -> int:
        return self.code

    @property
    def sentinel(self) -> int:
        return self.end

    def join(self, timeout: float | None = None) -> None:
        """It is over."""
