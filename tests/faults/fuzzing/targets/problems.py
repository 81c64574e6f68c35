"""Theories and problem files: what is parsed, and what `r2n check` makes of it with the other files of a problem."""

from functools import partial

from r2n.cli.problems import summary_of
from r2n.data.problem import load_problem, read_problem_file
from r2n.logic.parser import parse_theory
from tests.faults.fuzzing.target import Target, as_text, scratch, written
from tests.toy_problem import write_toy_problem

THEORY_TOKENS = (
    *(b"domain ", b"predicate ", b"rule ", b"implicit ", b" closed", b" open", b" xor ", b" & ", b" | ", b" -> "),
    *(b" <-> ", b"!", b" != ", b"*(x, y)", b"(x, y)", b": ", b", ", b" = {", b"}", b'"light blue"', b'"\\"', b"# "),
    *(b"[1.5]", b"[-inf]", b"[nan]", b"[1e308]", b"near(x, y)", b"liesIn(y, z)", b"town", b"valley", b"x: town", b"_"),
    *(b"rule r: near(x, y) -> near(y, x)\n", b"implicit i: [near(x, y), liesIn(x, z)]\n", b"domain all = town | town"),
)
RULE = b"domain d\npredicate p(d)\nrule r: "
TOWNS = b"domain town, valley\npredicate liesIn(town, valley)\npredicate near(town, town)\nrule r: "
HARD_THEORIES = (
    b"(" * 100_000,
    *(RULE + b"(" * 50_000 + b"p(x)" + b")" * 50_000, RULE + b"!" * 100_000 + b"p(x)"),
    *(RULE + b" -> ".join([b"p(x)"] * 20_000), RULE + b" & ".join([b"p(x)"] * 10_000)),
    RULE + b" | ".join(b'p("%d")' % i for i in range(5_000)),
    b"rule r [" + b"9" * 100_000 + b"]: p(x)",
    b'"' + b'\\"' * 100_000,
    b"domain " + b"d" * 100_000,
    b"domain " + b", ".join(b"d%d" % i for i in range(10_000)),
    b"predicate p(" + b"d, " * 30_000 + b"d)",
    b"domain d = {" + b",".join(b"c%d" % i for i in range(20_000)) + b"}",
    b"#" * 200_000,
    b" " * 200_000 + b"x",
    b"\n" * 200_000 + b"(",
    *(
        TOWNS + sign.join(b"near(x%d, x%d)" % (i, i + 1) for i in range(atoms))
        for sign in (b" <-> ", b" xor ", b" -> ", b" | ", b" & ")
        for atoms in (8, 30, 90)
    ),
    TOWNS + b" | ".join(b"(near(x%d, x0) & near(x0, x%d))" % (i, i) for i in range(40)) + b" -> near(x0, x0)",
    TOWNS + b" & ".join(b"(near(x%d, x0) | near(x0, x%d))" % (i, i) for i in range(40)) + b" -> near(x0, x0)",
)
FILE_TOKENS = (
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
HARD_FILES = (
    *(b"x = " + b"[" * 100_000, b"x = " + b"{a = " * 20_000, b"x = " + b"[1, " * 20_000, b"[" + b"a." * 20_000 + b"a]"),
    *(b"a." * 20_000 + b"a = 1", b"dim = " + b"9" * 5_000, b"[model]\ndim = " + b"9" * 100_000, b"[" * 100_000),
    *(b"[model]\ndim = 0x" + b"f" * 100_000, b"[model]\nlearning_rate = 1e" + b"9" * 100_000, b"[a]\n" * 40_000),
    *(b'name = "' + b"x" * 200_000 + b'"', b" " * 200_000 + b"x", b"x = 1979-99-99", b"x = 99:99:99"),
    b"\n".join(b"[t%d]" % i for i in range(20_000)),
    b"\n".join(b"k%d = 1" % i for i in range(20_000)),
    b"[facts]\ntrain = [" + b'"train.tsv", ' * 100 + b"]",
)


def parsed(content: bytes) -> None:
    """A theory prints as a text that says the same."""
    theory = parse_theory(as_text(content))
    assert parse_theory(str(theory)) == theory


def read(content: bytes) -> None:
    read_problem_file(written("read.toml", content))


def checked(name: str, content: bytes) -> None:
    toy = scratch() / f"checked-{name}"
    if not toy.exists():
        write_toy_problem(toy)
    (toy / name).write_bytes(content)
    summary_of(load_problem(toy))


CHECKED_THEORY, CHECKED_FILE = partial(checked, "theory.r2n"), partial(checked, "problem.toml")
TARGETS = (
    Target("theory", parsed, THEORY_TOKENS, HARD_THEORIES, inputs=250_000, examples=1_500),
    Target("checked-theory", CHECKED_THEORY, THEORY_TOKENS, HARD_THEORIES, shares="theory", inputs=5_000),
    Target("problem-file", read, FILE_TOKENS, HARD_FILES, inputs=60_000, examples=800),
    Target("checked-problem", CHECKED_FILE, FILE_TOKENS, HARD_FILES, shares="problem-file", inputs=5_000),
)
