"""A page of HTML, read as a browser would: what is in it, and whether it is sound."""

import re
from collections import Counter
from html.parser import HTMLParser
from types import SimpleNamespace

VOID = frozenset({"meta", "br", "img", "link", "input", "hr", "col"})
DRAWN = frozenset({"line", "path", "polyline", "rect", "circle"})
REMOTE = re.compile(r"(?:https?:)?//|url\(|@import", re.I)


class Page(HTMLParser):
    """Tags with their attributes in order, and the text; what is not sound is in `faults`."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.faults: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.style = ""
        self.feed(html)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in DRAWN:
            self.faults.append(f"<{tag}/> closes itself")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes another")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def read_page(html: str) -> SimpleNamespace:
    """The number of each tag, all attributes, and the text as it stands."""
    page = Page(html)
    attributes = [pair for _, attributes in page.tags for pair in attributes.items()]
    return SimpleNamespace(tags=Counter(tag for tag, _ in page.tags), attributes=attributes, text="".join(page.texts))


def faults(html: str) -> list[str]:
    """What keeps a page from being sound, safe, whole in itself, or read aloud."""
    page = Page(html)
    return [*page.faults, *_unsafe(page), *_unreadable(page)]


def _unsafe(page: Page) -> list[str]:
    found = [
        f"<{tag}>" for tag, _ in page.tags if tag in ("script", "iframe", "object", "embed", "form", "link", "base")
    ]
    for tag, attributes in page.tags:
        found += [f"{tag} {name}" for name in attributes if name.startswith("on")]
        found += [
            f"{tag} {name}={value}"
            for name, value in attributes.items()
            if name in ("href", "src", "action", "xlink:href") and not (value or "").startswith(("#", "data:"))
        ]
    return found + [f"the style loads {match}" for match in REMOTE.findall(page.style)]


def _unreadable(page: Page) -> list[str]:
    found = [f"id {name} twice" for name, n in Counter(a["id"] for _, a in page.tags if "id" in a).items() if n > 1]
    ids = {a["id"] for _, a in page.tags if "id" in a}
    targets = [(a.get("href") or "")[1:] for a in page.all("a")] + [
        a["aria-labelledby"] for _, a in page.tags if "aria-labelledby" in a
    ]
    found += [f"nothing is called {target}" for target in targets if target not in ids]
    found += ["a drawing without words" for a in page.all("svg") if "aria-hidden" not in a and not a.get("aria-label")]
    found += ["a drawing without role" for a in page.all("svg") if "aria-label" in a and a.get("role") != "img"]
    found += ["a heading of a table without scope" for a in page.all("th") if "scope" not in a]
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    found += [f"h{b} after h{a}" for a, b in zip([0, *levels], levels, strict=False) if b > a + 1]
    found += ["not one h1"] * (levels.count(1) != 1)
    found += [f"no <{tag}>" for tag in ("main", "title", "style") if not page.all(tag)]
    return found + ["no language"] * (page.all("html")[0].get("lang") is None)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours (#rrggbb) as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
