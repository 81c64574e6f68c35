"""The drawing of an explanation as records."""

from r2n.explanation.drawing.as_records import explanation_drawing
from r2n.explanation.drawing.picture import explanation_picture
from r2n.model.model import Model
from r2n.model.run import Run


def test_boxes_and_links_are_those_of_the_drawing(toy_run: Run) -> None:
    found = Model.from_run(toy_run).explain("liesIn(n2, north)")
    drawing = explanation_drawing(found)
    answer, *others = drawing["boxes"]
    assert (answer["kind"], answer["text"], answer["switch"]) == ("atom", "liesIn(n2, north)", None)
    assert answer["lines"][0] == "liesIn(n2, north)"
    assert drawing["width"] <= explanation_picture(found).width
    ids = {box["id"] for box in drawing["boxes"]}
    assert len(ids) == len(drawing["boxes"])
    assert {link["from"] for link in drawing["links"]} | {link["to"] for link in drawing["links"]} <= ids
    assert all(len(link["points"]) == 4 for link in drawing["links"])
    rules = [box for box in others if box["kind"] == "rule"]
    assert {box["switch"]["rule"] for box in rules} == {"neighbours"}
    assert sorted(box["effect"] for box in rules if box["column"] == 1) == sorted(r.effect for r in found.reasons)


def test_what_is_known_can_be_switched_off(toy_run: Run) -> None:
    predictor = Model.from_run(toy_run).with_facts("!liesIn(n1, south)")
    facts = {
        box["text"]: (box["truth"], box["switch"])
        for atom in ("liesIn(n2, north)", "liesIn(n2, south)")
        for box in explanation_drawing(predictor.explain(atom))["boxes"][1:]
        if box["kind"] == "atom"
    }
    assert facts["liesIn(n1, north)"] == (True, {"fact": "liesIn(n1, north)"})
    assert facts["liesIn(n1, south)"] == (False, {"fact": "!liesIn(n1, south)"})
