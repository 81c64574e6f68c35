"""An explanation, drawn: the few kinds of marks that a picture is made of, whoever renders it.

Coordinates are pixels from the upper left corner. A style is a name of `styles.py`.
"""

from dataclasses import dataclass, replace
from typing import Literal

Number = int | float
Point = tuple[Number, Number]


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A box with round corners; `strength` (0 to 1) is how much of its style's fill is seen."""

    x: Number
    y: Number
    width: Number
    height: Number
    style: str
    radius: Number = 0.0
    strength: Number = 1.0

    def moved(self, dx: Number, dy: Number) -> "Rectangle":
        """The same elsewhere."""
        return replace(self, x=self.x + dx, y=self.y + dy)


@dataclass(frozen=True, slots=True)
class Words:
    """A line of text, on its baseline."""

    x: Number
    y: Number
    text: str
    style: str
    anchor: Literal["start", "middle", "end"] = "start"

    def moved(self, dx: Number, dy: Number) -> "Words":
        """The same elsewhere."""
        return replace(self, x=self.x + dx, y=self.y + dy)


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line through its points; or (`is_curve`: four points) a cubic Bézier curve."""

    points: tuple[Point, ...]
    style: str
    width: Number
    is_curve: bool = False

    def moved(self, dx: Number, dy: Number) -> "Stroke":
        """The same elsewhere."""
        return replace(self, points=tuple((x + dx, y + dy) for x, y in self.points))


Mark = Rectangle | Words | Stroke


@dataclass(frozen=True, slots=True)
class Group:
    """Marks that show one thing; `title` says in full what it is."""

    title: str
    marks: tuple[Mark, ...]

    def moved(self, dx: Number, dy: Number) -> "Group":
        """The same elsewhere."""
        return replace(self, marks=tuple(mark.moved(dx, dy) for mark in self.marks))


@dataclass(frozen=True, slots=True)
class Picture:
    """All marks, what lies below others first; `title` and `description` are for who cannot see them."""

    title: str
    description: str
    width: Number
    height: Number
    groups: tuple[Group, ...]
