"""Names as a terminal, a page or a drawing can show them.

Rich drops some of what a terminal obeys (a carriage return), and passes on the rest: colours, the title of the window,
the order of letters. A name would be shown as another. XML cannot hold some characters at all.
"""

import re

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_UNPRINTABLE = re.compile(r"[\t\n\ud800-\udfff\ufffe\uffff]")


def visible(text: str) -> str:
    """The text with what steers a terminal, or turns the order of letters, as escapes; lines and tabs stay."""
    return _STEERING.sub(lambda found: ascii(found.group())[1:-1], text)


def printable(text: str) -> str:
    """The same on one line, also without what XML cannot hold."""
    return _UNPRINTABLE.sub(lambda found: ascii(found.group())[1:-1], visible(text))


def shortened(text: str, most: int = 200) -> str:
    """The text, without its middle if it is longer than `most` characters."""
    end = most // 3
    return text if len(text) <= most else f"{text[: most - end - 5]} ... {text[len(text) - end :]}"
