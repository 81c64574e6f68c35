"""What an explanation says, as one document."""

import json
from dataclasses import replace

import pytest

from r2n.explanation.drawing import explanation_svg
from r2n.explanation.records import MOST_LINES, Belief, Explanation, Fidelity, LayerBelief, Member, Reason
from r2n.explanation.text import explanation_text
from tests.explanations import NASTY, italy
from tests.page_reader import read_page


def test_the_document_has_the_keys_that_others_rely_on() -> None:
    inner = Member("p(b)", Belief(1.0, 2.0, known=True))
    made = Explanation(
        "p(a)",
        Belief(0.9, 2.2),
        (LayerBelief(0, 0.0, 0.5), LayerBelief(1, 2.2, 0.9)),
        (Reason("r", "p(b) -> p(a)", 1.5, (inner,)),),
        fidelity=Fidelity(1, 2, full=2.2, alone=2.0, without=0.7, none=0.2),
    )
    document = json.loads(json.dumps(made.to_dict()))
    assert document["atom"] == "p(a)"
    assert document["probability"] == 0.9
    assert [layer["layer"] for layer in document["layers"]] == [0, 1]
    assert document["reasons"][0]["because"][0]["belief"]["known"] is True
    assert document["counterfactuals"] == []
    assert abs(document["fidelity"]["sufficiency"] - 0.9) < 1e-12
    assert abs(document["fidelity"]["necessity"] - 0.75) < 1e-12


def test_without_any_fidelity_there_is_none_in_the_document() -> None:
    assert Explanation("p(a)", Belief(0.5, 0.0), (), ()).to_dict()["fidelity"] is None


def test_shares_of_nothing_are_none() -> None:
    nothing = Fidelity(0, 0, full=1.0, alone=1.0, without=1.0, none=1.0)
    assert nothing.sufficiency is None
    assert nothing.necessity is None


def test_printed_it_is_the_tree_and_shown_one_screen_of_it() -> None:
    assert str(italy()) == explanation_text(italy())
    short = replace(italy(), reasons=(), counterfactuals=(), contrast=None)
    assert repr(short) == str(short)
    many = replace(italy(), reasons=italy().reasons * 100)
    lines, whole = repr(many).splitlines(), str(many).splitlines()
    assert lines[:-1] == whole[:MOST_LINES]
    assert lines[-1] == f"... and {len(whole) - MOST_LINES:,} more lines: print it"


def test_a_notebook_shows_the_drawing_and_the_words() -> None:
    html = italy()._repr_html_()
    assert italy()._repr_svg_() == explanation_svg(italy())
    assert italy()._repr_svg_() in html
    page = read_page(html)
    assert page.tags["svg"] == page.tags["details"] == 1
    assert "locatedIn(italy, europe)" in page.text
    assert "layer by layer" in page.text


@pytest.mark.parametrize("name", NASTY)
def test_names_in_a_notebook_are_text(name: str) -> None:
    made = Explanation(name, Belief(0.5, 0.0), (), (Reason(name, name, 1.0, (Member(name, Belief(0.5, 0.0)),)),))
    page = read_page(made._repr_html_())
    assert page.tags["img"] == page.tags["script"] == 0
    assert not [name for name, _ in page.attributes if name.startswith("on")]
