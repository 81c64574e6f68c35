"""Names that would steer a terminal, as it can show them.

Rich drops some of what a terminal obeys (a carriage return), and passes on the rest: colours, the title of the window,
the order of letters. A name would be shown as another.
"""

import re

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text with what steers a terminal, or turns the order of letters, as escapes; lines and tabs stay."""
    return _STEERING.sub(lambda found: ascii(found.group())[1:-1], text)
