"""Why an answer is given, with its drawing."""

import json
from typing import Any

from r2n.serving.explaining import explain_atom
from r2n.serving.session import Session
from tests.command_line import document


def explained(session: Session, **more: Any) -> Any:
    asked = {"atom": "liesIn(n2, north)", "against": None, "depth": 2, "top": 5, **more}
    return json.loads(explain_atom(session, asked).body)


def test_it_is_the_document_of_the_command_line_and_a_drawing(session: Session) -> None:
    found = explained(session)
    drawing = found.pop("drawing")
    assert found == document("explain", session.folder, "liesIn(n2, north)")
    assert drawing["boxes"][0]["text"] == "liesIn(n2, north)"


def test_what_a_box_switches_off_can_be_asked_without(session: Session) -> None:
    found = explained(session)
    switches = [box["switch"] for box in found["drawing"]["boxes"] if box["switch"]]
    facts = [switch["fact"] for switch in switches if "fact" in switch]
    rules = [switch["rule"] for switch in switches if "rule" in switch]
    assert facts
    assert explained(session, without=facts[:1])["logit"] != found["logit"]
    assert set(rules) == {"neighbours"}
    assert explained(session, without_rules=rules[:1])["reasons"] == []
