"""A run, served: why an answer is given, with its drawing."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from r2n.explanation.drawing import explanation_drawing
from r2n.serving.replies import Reply
from r2n.serving.session import Session


def explain_atom(session: Session, asked: Mapping[str, Any]) -> Reply:
    """The document of `r2n explain --json`, and the drawing of it."""
    predictor = session.changed(asked)
    wanted = {name: asked[name] for name in ("depth", "top", "against")}
    found = predictor.explain(asked["atom"], **wanted)
    return Reply.of({**found.to_dict(), "drawing": asdict(explanation_drawing(found))})
