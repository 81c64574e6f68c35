"""Rules as other systems write them: AnyBURL, AMIE, Prolog, clauses and formulas of Markov logic."""

from r2n.logic.horn import parse_horn_rules
from tests.faults.fuzzing.target import Target, as_text

TOKENS = (
    *(b" -> ", b" <= ", b" :- ", b" => ", b" <=> ", b" v ", b" ^ ", b" & ", b", ", b"!", b"~", b".", b"|", b"\t", b"?"),
    *(b"r0:0.8:", b"r1:", b"1.5 ", b"-inf ", b"1e+-2:", b"nan:", b"p(x, y)", b"q(Y, Z)", b"h(X)", b'"a b"', b"'a'"),
    *(b"?a p ?b ", b"#", b"%", b"//", b"dom = {a, b}", b"p(dom!, dom)", b":", b"12\t10\t0.83\t", b"eE+-"),
)
HARD = (
    b"p" + b" " * 100_000 + b"-> h(x)",
    b"1" * 100_000 + b"x(y)",
    b"1.5 !" + b" " * 100_000 + b"x",
    b"1.5 !p" + b" " * 100_000 + b"x",
    b" :" + b" " * 100_000 + b"-> h(x)",
    b"1:eee:p(x) -> q(x)",
    b", ".join([b"p(x)"] * 10_000) + b" " * 100_000 + b"-> q(x)",
    *(b"p(x)" + b" " * 200_000 + tail for tail in (b"", b"x", b"-> q(x)")),
    b"a" * 200_000 + b"->",
    b"a " * 100_000 + b"-> h(x)",
    b"!a" + b" " * 100_000 + b"b",
    b")" * 200_000,
    b") " * 100_000,
    b")" + b" " * 200_000 + b"-",
    b"x" + b" " * 200_000 + b"= {",
    b":" * 100_000 + b"->",
    b"a:" * 100_000 + b"->",
    b"a:1" + b"1" * 100_000 + b"->",
    b"a:" + b"9" * 100_000 + b":p(x) -> q(x)",
    b"9" * 100_000 + b" p(x)",
    b", ".join([b"p(x)"] * 20_000) + b" -> q(x)",
    b" v ".join([b"!p(x)"] * 20_000),
    b"p(" + b"x, " * 50_000 + b"x).",
    b"p(" + b"x" * 100_000 + b"!",
    b"?a p ?b " * 10_000 + b"=> ?a q ?b",
    b"1.5 !p(x) v " + b"(" * 100_000,
    b"'" * 100_000 + b"(x) v p(x)",
    b"p(x) -> q(x)\n" * 10_000,
)


def read(content: bytes) -> None:
    str(parse_horn_rules(as_text(content)))


TARGETS = (Target("rules", read, TOKENS, HARD, inputs=250_000, examples=1_500),)
