"""A model that is asked: each line is a question, or after a mark an atom to explain, a fact more, a fact fewer."""

from functools import cache

from r2n.errors import R2NError
from r2n.model.model import Model
from r2n.model.questions import complete
from tests.faults.fuzzing.target import Target, as_text, scratch
from tests.served_problem import write_served_run

ATOMS = (b"liesIn(n1, ?)", b"near(n1, n2)", b"liesIn(n2, north)", b"!", b"?", b"n1", b"north", b"[/]", b"town", b"new")
MARKS = (b":why ", b":with ", b":without ", b"\n", b"near(")
HARD = (
    *(b":why " + b"9" * 5_000, b":" * 60_000, b":why " + b"(" * 60_000, b" " * 60_000),
    *(b":with " + b"near(n1, " * 20_000, b":why \xd9\xa1"),
)


@cache
def _model() -> Model:
    return Model.load(write_served_run(scratch() / "asked-run"), device="cpu")


def lines(content: bytes) -> None:
    """A few lines, one after the other, each shown, and how each may go on; a refusal is an answer too."""
    model = _model()
    for line in as_text(content).split("\n")[:4]:
        complete(model.base.language, line, len(line))
        mark, _, text = line.partition(" ")
        try:
            if mark == ":why":
                str(model.explain(text))
            elif mark == ":with":
                model = model.with_changes([text])
            elif mark == ":without":
                model = model.with_changes(fewer=[text])
            else:
                repr(model.predict(line, top=5))
        except R2NError:
            pass


def _ready() -> tuple[bytes, ...]:
    """The model is loaded before, and not within the time of an input."""
    _model()
    return ()


TARGETS = (Target("questions", lines, (*MARKS, *ATOMS), HARD, _ready, inputs=10_000, examples=200, longest=300),)
