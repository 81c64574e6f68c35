"""An explanation -> a tree for the terminal, and the same tree as plain text."""

from io import StringIO

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from r2n.explanation.records import Explanation
from r2n.explanation.telling import Line, Span, tell
from r2n.explanation.wording import shortened
from r2n.visible import visible

BAR_WIDTH = 10
EIGHTHS = " ▏▎▍▌▋▊▉"
LONGEST_NAME = 200
STYLES = {
    "title": "bold",
    "atom": "",
    "rule": "bold",
    "formula": "dim",
    "number": "bold",
    "for": "bright_blue",
    "against": "dark_orange",
    "bar": "bright_blue",
    "quiet": "dim",
}
PLAIN = {"→": "->", "±": "+/-", "…": "..", "·": "-", "█": "#"}
IN_ASCII = str.maketrans(PLAIN | {block: "#" if i > 4 else " " for i, block in enumerate(EIGHTHS)})


def explanation_tree(explanation: Explanation, *, in_ascii: bool = False) -> Tree:
    """An explanation as a tree of rich; names are text, never markup. `in_ascii`: bars and signs of ours are plain."""
    return _tree(tell(explanation), in_ascii)


def explanation_text(explanation: Explanation, *, width: int = 80) -> str:
    """An explanation as plain text, for notebooks and logs: what the command line prints, without colours."""
    console = Console(
        file=StringIO(), width=width, color_system=None, force_terminal=False, force_jupyter=False, _environ={}
    )
    with console.capture() as captured:
        console.print(explanation_tree(explanation))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _tree(line: Line, in_ascii: bool) -> Tree:
    tree = Tree(_label(line, in_ascii), guide_style="dim", highlight=False)
    tree.children.extend(_tree(below, in_ascii) for below in line.lines)
    return tree


def _label(line: Line, in_ascii: bool) -> Text:
    sign = "against" if any(span.role == "against" for span in line.spans) else "for"
    label = Text()
    for span in line.spans:
        text = _text(span).translate(IN_ASCII) if in_ascii else _text(span)
        label.append(text, STYLES.get(sign if span.role == "bar" else span.role))
    return label


def _text(span: Span) -> str:
    if span.role == "bar":
        return bar(span.share)
    text = visible(shortened(span.text, LONGEST_NAME) if span.role in ("atom", "rule", "formula") else span.text)
    return f"\n{text}" if span.role == "formula" else text


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """A bar of blocks, `share` (0 to 1) of the width long and filled up with spaces."""
    eighths = round(share * width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (EIGHTHS[rest] if rest else "")).ljust(width)
