"""A process of a campaign: a target by atheris; see campaign.py.

Each kind of finding is kept once, by its smallest input, beside its traceback. The process ends with its last input:
libFuzzer would call `exit`, and libraries whose threads are at work then take their memory apart.
"""

import os
import sys
import traceback
from pathlib import Path
from random import Random

import atheris

from tests.faults.fuzzing.edits import thrown

COUNTED_EACH = 100

with atheris.instrument_imports(include=["r2n", "lark"], enable_loader_override=False):
    from tests.faults.fuzzing.all_targets import targets_of
    from tests.faults.fuzzing.target import OPENED, Target, TooSlowError, check_process

    MODULE = targets_of(sys.argv[1])


class Kept:
    """What was found with a target, and how many inputs were tried, in files that outlive the process."""

    def __init__(self, folder: Path, before: int) -> None:
        """`before`: the inputs of processes that have died."""
        self.folder, self.tried = folder, before
        self.smallest: dict[str, int] = {}

    def count(self, last: int) -> bool:
        """One more; whether it was the last."""
        self.tried += 1
        if self.tried >= last or self.tried % COUNTED_EACH == 0:
            (self.folder / "tried").write_text(str(self.tried))
        return self.tried == last

    def add(self, error: BaseException, content: bytes) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        own = next((frame for frame in reversed(frames) if "/r2n/" in frame.filename), frames[-1])
        kind = f"{type(error).__name__}-{Path(own.filename).stem}-{own.lineno}"
        if len(content) < self.smallest.get(kind, len(content) + 1):
            self.smallest[kind] = len(content)
            (self.folder / f"{kind}.input").write_bytes(content)
            (self.folder / f"{kind}.txt").write_text("".join(traceback.format_exception(error)), errors="replace")


def fuzz(target: Target, folder: Path, runs: int, seed: int, before: int) -> None:
    kept, seeds, corpus = Kept(folder, before), target.ready(), folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for i, content in enumerate(seeds):
        (corpus / f"seed-{i}").write_bytes(content)

    def one(content: bytes) -> None:
        try:
            target.try_on(content)
            check_process()
        except (Exception, TooSlowError) as error:
            kept.add(error, content)
        if kept.count(before + runs):
            OPENED.close()
            os._exit(0)

    def mutated(content: bytes, most: int, seed: int) -> bytes:
        if seed % 3 == 0:
            return atheris.Mutate(content, most)
        return thrown(content, seeds, target.tokens, Random(seed))[:most]

    options = [f"-runs={runs}", f"-seed={seed}", f"-max_len={target.longest}", "-timeout=600"]
    quiet = [
        "-rss_limit_mb=0",
        "-report_slow_units=600",
        "-verbosity=0",
        "-reload=0",
        f"-artifact_prefix={folder}/died-",
    ]
    atheris.Setup([sys.argv[0], *options, *quiet, str(corpus)], one, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    chosen = next(target for target in MODULE if target.name == sys.argv[2])
    fuzz(chosen, Path(sys.argv[3]), *map(int, sys.argv[4:]))
