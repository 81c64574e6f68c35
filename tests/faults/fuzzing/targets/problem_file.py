"""Problem files: the text of a problem.toml beside tables, read and checked as by `r2n check`."""

from functools import cache
from pathlib import Path

from r2n.cli.problems import summary_of
from r2n.data.problem import load_problem, read_problem_file
from tests.faults.fuzzing.target import Target, scratch, written
from tests.toy_problem import write_toy_problem

TOKENS = (
    *(b"name = ", b"theory = ", b"[facts]\n", b"train = ", b"background = ", b"[queries]\n", b"valid = ", b"test = "),
    *(b"[grounding]\n", b"[model]\n", b"[training]\n", b"[derived]\n", b"[features.town]\n", b"[candidates.liesIn]\n"),
    *(b'"train.tsv"', b'"theory.r2n"', b"true", b"false", b"[[", b"]]", b"{ file = ", b" }", b'"""', b"'''", b"1e400"),
    *(b'strategy = "backward"\n', b"depth = ", b"dim = ", b"layers = ", b"epochs = ", b"names = true\n"),
    *(b"inf", b"nan"),
    *(b'on_error = "skip"\n', b"1979-05-27T07:32:00Z", b"0x", b"0b1", b"\\u0000", b"\\ud800"),
    *(b"a.b.c = 1\n", b"[a.b]\n"),
    *(b'format = "prolog"', b'predicate = "near"', b'columns = ["a"]', b"header = true"),
    *(b'empty = "skip"', b"query = "),
)
HARD = (
    b"x = " + b"[" * 100_000,
    b"x = " + b"{a = " * 20_000,
    b"[" + b"a." * 20_000 + b"a]",
    b"a." * 20_000 + b"a = 1",
    b"dim = " + b"9" * 5_000,
    b"[model]\ndim = " + b"9" * 100_000,
    b"[model]\ndim = 0x" + b"f" * 100_000,
    b"[model]\nlearning_rate = 1e" + b"9" * 100_000,
    b"x = " + b"[1, " * 20_000,
    b'name = "' + b"x" * 200_000 + b'"',
    b"[" * 100_000,
    b"[a]\n" * 40_000,
    b"\n".join(b"[t%d]" % i for i in range(20_000)),
    b"\n".join(b"k%d = 1" % i for i in range(20_000)),
    b" " * 200_000 + b"x",
    b"x = 1979-99-99",
    b"x = 99:99:99",
    b"[facts]\ntrain = [" + b'"train.tsv", ' * 100 + b"]",
)


def read(content: bytes) -> None:
    """The options alone."""
    read_problem_file(written("read.toml", content))


@cache
def _toy() -> Path:
    return write_toy_problem(scratch() / "problem")


def checked(content: bytes) -> None:
    """As `r2n check` does."""
    (_toy() / "problem.toml").write_bytes(content)
    summary_of(load_problem(_toy()))


TARGETS = (
    Target("problem-file", read, TOKENS, HARD, inputs=60_000, examples=800),
    Target("checked-problem", checked, TOKENS, HARD, shares="problem-file", inputs=5_000),
)
