"""JSON that every reader understands."""

import json
from math import inf, nan

import pytest

from r2n.files import finite, json_text


def test_what_is_not_finite_is_null() -> None:
    document = {"a": [nan, 1.5, (inf, "NaN")], "b": {"c": -inf, "d": None}}
    expected = {"a": [None, 1.5, [None, "NaN"]], "b": {"c": None, "d": None}}
    assert finite(document) == expected
    assert json.loads(json_text(document), parse_constant=pytest.fail) == expected
    assert json_text([nan], indent=1) == "[\n null\n]"


def test_names_stay_as_they_are_unless_ascii_is_wanted() -> None:
    assert json_text(["café", nan]) == '["café", null]'
    assert json_text(["café"], ascii_alone=True) == json_text(["café", nan], ascii_alone=True)[:-7] + "]"
    assert json_text(["café"], ascii_alone=True) == '["caf\\u00e9"]'


def test_what_is_no_document_is_still_an_error() -> None:
    with pytest.raises(TypeError):
        json_text({"a": object()})
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises((ValueError, RecursionError)):
        json_text(circle)
