"""A page of HTML, read as a browser would: which tags and attributes it has, and what a person reads."""

from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Page:
    tags: Counter[str] = field(default_factory=Counter)
    attributes: list[tuple[str, str | None]] = field(default_factory=list)
    text: str = ""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.tags[tag] += 1
        self.page.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.page.text += data


def read_page(text: str) -> Page:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.page
