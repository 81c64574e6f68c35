"""An explanation as a tree on the terminal and as plain text."""

from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from r2n.explanation.records import Belief, Explanation, LayerBelief, Member, Reason
from r2n.explanation.text import LONGEST_NAME, bar, explanation_text, explanation_tree
from tests.explanations import CLOSED, TRUE, italy

SMALL = Explanation(
    "p([red]a[/red])",
    Belief(0.9, 2.2),
    (LayerBelief(0, 0.0, 0.5), LayerBelief(1, 2.2, 0.9)),
    (Reason("r", "q(a) & !s(a) -> p(a)", 1.5, (Member("q(a)", TRUE), Member("s(a)", CLOSED))),),
)
PRINTED = """\
p([red]a[/red])  0.90  not known, believed by the network; not calibrated
├── layer by layer
│   ├── input layer  █████      0.50
│   └── layer 1      █████████  0.90
└── because of these ground rules, by their effect on the logit
    └──  +1.50 ██████████ r
        q(a) & !s(a) -> p(a)
        ├── q(a): true by the facts
        └── s(a): closed: no fact, so false"""


def test_the_tree_as_text() -> None:
    assert explanation_text(SMALL) == PRINTED


def test_names_do_not_steer_the_terminal() -> None:
    reason = Reason("r\x07", "q(a\r) -> p(b)", 1.5, (Member("q(a\r)", TRUE),))
    text = explanation_text(Explanation("p(\x1b[2J\u202e)", Belief(0.9, 2.2), (), (reason,)))
    assert not set("\r\x1b\x07\u202e") & set(text)
    for shown in (r"p(␛[2J\u202e)", "r␇", "q(a␍) -> p(b)", "q(a␍): true by the facts"):
        assert shown in text


def test_it_is_readable_at_80_columns() -> None:
    lines = explanation_text(italy()).splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert not any(line.endswith(" ") for line in lines)


def test_plain_signs_where_the_terminal_has_no_others() -> None:
    file = StringIO()
    console = Console(file=file, width=100, _environ={})
    console.print(explanation_tree(italy(), in_ascii=True))
    own = file.getvalue().translate(str.maketrans("", "", "│├└─"))  # rich draws the tree by itself
    assert own.isascii()
    assert "0.97 -> 0.78" in own
    assert "networks differ by +/-0.31" in own
    assert "######" in own


def test_long_names_are_cut() -> None:
    name = f"p({'x' * 10_000})"
    text = explanation_text(Explanation(name, Belief(0.5, 0.0), (), ()), width=1000)
    assert f"p({'x' * 50}" in text
    assert len(text) < LONGEST_NAME + 100


@pytest.mark.parametrize(
    ("share", "drawn"), [(0.0, ""), (0.001, "▏"), (0.5, "█████"), (0.55, "█████▌"), (1.0, "██████████")]
)
def test_bars(share: float, drawn: str) -> None:
    assert bar(share) == drawn.ljust(10)
