"""Theory files: the parser, what it prints, and what `r2n check` makes of a theory beside facts."""

from functools import cache
from pathlib import Path

from r2n.cli.problems import summary_of
from r2n.data.problem import load_problem
from r2n.logic.parser import parse_theory
from tests.faults.fuzzing.target import Target, as_text, scratch
from tests.toy_problem import write_toy_problem

TOKENS = (
    *(b"domain ", b"predicate ", b"rule ", b"implicit ", b" closed", b" open", b" xor ", b" & ", b" | ", b" -> "),
    *(b" <-> ", b"!", b" != ", b"*(x, y)", b"(x, y)", b": ", b", ", b" = {", b"}", b'"light blue"', b'"\\"', b"# "),
    *(b"[1.5]", b"[-inf]", b"[nan]", b"[1e308]", b"near(x, y)", b"liesIn(y, z)", b"town", b"valley", b"x: town", b"_"),
    *(b"rule r: near(x, y) -> near(y, x)\n", b"implicit i: [near(x, y), liesIn(x, z)]\n", b"domain all = town | town"),
)
TOWNS = b"domain town, valley\npredicate liesIn(town, valley)\npredicate near(town, town)\nrule r: "
HARD = (
    b"(" * 100_000,
    b"domain d\npredicate p(d)\nrule r: " + b"(" * 50_000 + b"p(x)" + b")" * 50_000,
    b"domain d\npredicate p(d)\nrule r: " + b"!" * 100_000 + b"p(x)",
    b"domain d\npredicate p(d)\nrule r: " + b" -> ".join([b"p(x)"] * 20_000),
    b"domain d\npredicate p(d)\nrule r: " + b" & ".join([b"p(x)"] * 10_000),
    b"domain d\npredicate p(d)\nrule r: " + b" | ".join(b'p("%d")' % i for i in range(5_000)),
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


def parsed(content: bytes) -> None:
    """A theory prints as a text that says the same."""
    theory = parse_theory(as_text(content))
    assert parse_theory(str(theory)) == theory


@cache
def _toy() -> Path:
    return write_toy_problem(scratch() / "checked")


def checked(content: bytes) -> None:
    """As the theory of a problem that is checked."""
    (_toy() / "theory.r2n").write_bytes(content)
    summary_of(load_problem(_toy()))


TARGETS = (
    Target("theory", parsed, TOKENS, HARD, inputs=250_000, examples=1_500),
    Target("checked-theory", checked, TOKENS, HARD, shares="theory", inputs=5_000),
)
