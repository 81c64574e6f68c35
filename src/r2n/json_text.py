"""Whatever is told as JSON: valid for every reader. JSON has no NaN and no infinities, so that these become null."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any


def json_text(document: Any, *, indent: int | None = None, ascii_alone: bool = False) -> str:
    """A document as JSON; `ascii_alone` escapes all other characters."""
    try:
        return json.dumps(document, indent=indent, ensure_ascii=ascii_alone, allow_nan=False)
    except ValueError:  # rare, so that the document is looked through only then
        return json.dumps(finite(document), indent=indent, ensure_ascii=ascii_alone, allow_nan=False)


def finite(value: Any) -> Any:
    """The same with None for numbers that are not finite, and lists for tuples."""
    if isinstance(value, Mapping):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value
