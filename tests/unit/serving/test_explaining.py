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
    assert drawing["nodes"][0] == {"kind": "answer", "of": "liesIn(n2, north)", "fact": None}
    assert drawing["wide"].startswith("<svg")
    assert "style" not in drawing["wide"] + drawing["narrow"]  # which the policy of the page would not let in


def test_facts_and_rules_of_the_drawing_can_be_left_out(session: Session) -> None:
    found = explained(session)
    nodes = found["drawing"]["nodes"]
    facts = [node["fact"] for node in nodes if node["fact"] is not None]
    rules = [node["of"] for node in nodes if node["kind"] == "rule"]
    assert facts
    assert explained(session, without=facts[:1])["logit"] != found["logit"]
    assert set(rules) == {"neighbours"}
    assert explained(session, without_rules=rules[:1])["reasons"] == []
