"""What an explanation says, as one document."""

import json

from r2n.explanation.records import Belief, Explanation, Fidelity, LayerBelief, Member, Reason


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
