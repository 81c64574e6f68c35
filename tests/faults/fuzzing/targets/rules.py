"""Rules as other systems write them: AnyBURL, AMIE, Prolog, clauses and formulas of Markov logic."""

from r2n.logic.parser import parse_horn_rules
from tests.faults.fuzzing.target import Target, as_text

TOKENS = (
    *(b" -> ", b" <= ", b" :- ", b" => ", b" <=> ", b" v ", b" ^ ", b" & ", b", ", b"!", b"~", b".", b"|", b"\t", b"?"),
    *(b"r0:0.8:", b"r1:", b"1.5 ", b"-inf ", b"1e+-2:", b"nan:", b"p(x, y)", b"q(Y, Z)", b"h(X)", b'"a b"', b"'a'"),
    *(b"?a p ?b ", b"#", b"%", b"//", b"dom = {a, b}", b"p(dom!, dom)", b":", b"12\t10\t0.83\t", b"eE+-"),
)
BLANKS = b" " * 100_000
HARD = (
    *(b"p" + BLANKS + b"-> h(x)", b"1.5 !" + BLANKS + b"x", b"1.5 !p" + BLANKS + b"x", b" :" + BLANKS + b"-> h(x)"),
    *(
        b"!a" + BLANKS + b"b",
        b")" + BLANKS + b"-",
        b"x" + BLANKS + b"= {",
        b"1" * 100_000 + b"x(y)",
        b"1:eee:p(x) -> q(x)",
    ),
    *(b"p(x)" + BLANKS + tail for tail in (b"", b"x", b"-> q(x)")),
    *(piece * 100_000 + b"->" for piece in (b"a", b"a ", b":", b"a:")),
    *(b")" * 200_000, b") " * 100_000, b"a:1" + b"1" * 100_000 + b"->", b"a:" + b"9" * 100_000 + b":p(x) -> q(x)"),
    *(b"9" * 100_000 + b" p(x)", b"p(" + b"x, " * 50_000 + b"x).", b"p(" + b"x" * 100_000 + b"!"),
    b", ".join([b"p(x)"] * 20_000) + BLANKS + b"-> q(x)",
    b" v ".join([b"!p(x)"] * 20_000),
    b"?a p ?b " * 10_000 + b"=> ?a q ?b",
    *(b"1.5 !p(x) v " + b"(" * 100_000, b"'" * 100_000 + b"(x) v p(x)", b"p(x) -> q(x)\n" * 10_000),
)


def read(content: bytes) -> None:
    str(parse_horn_rules(as_text(content)))


TARGETS = (Target("rules", read, TOKENS, HARD, inputs=250_000, examples=1_500),)
