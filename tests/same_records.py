"""Whether two values are the same in every field: also what has no `==` (arrays, errors), and what `==` passes over."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from r2n.errors import R2NError
from r2n.logic.formula import Formula

LEFT_OUT = ("tables",)  # of Candidates: they are read, and not kept


def assert_same(found: Any, expected: Any, at: str = "") -> None:
    """Equal in type and content, also the order of mappings; where an atom stood in its file is passed over."""
    assert type(found) is type(expected), at
    parts, others = children(expected), children(found)
    if parts is None or others is None:
        assert leaf(found) == leaf(expected), at
        return
    assert [name for name, _ in others] == [name for name, _ in parts], at
    for (name, expected_part), (_, part) in zip(parts, others, strict=True):
        assert_same(part, expected_part, f"{at}.{name}")


def children(value: Any) -> list[tuple[object, Any]] | None:
    if is_dataclass(value) and not isinstance(value, Formula):
        return [(field.name, getattr(value, field.name)) for field in fields(value) if field.name not in LEFT_OUT]
    if isinstance(value, Mapping):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, tuple) else None


def leaf(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    return (str(value), value.what, value.where, value.hint) if isinstance(value, R2NError) else value
