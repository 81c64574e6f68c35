"""The lines that r2n ask takes."""

import pytest

from r2n.cli.asking_lines import COMMANDS, Line, complete_line
from r2n.data.problem import Problem
from r2n.errors import ConfigError
from r2n.model.questions import Completions


def test_a_question_has_no_command() -> None:
    assert Line.read("  liesIn(n1, ?) \n") == Line("", "liesIn(n1, ?)")


def test_a_command_and_its_words() -> None:
    assert Line.read(":why   liesIn(n1, north) ") == Line(":why", "liesIn(n1, north)")
    assert Line.read(":why") == Line(":why", "")
    assert Line.read(" :facts\n") == Line(":facts", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (":wy", "there is no ':wy'\n  did you mean ':why'?"),
        (":xyzzy", "there is no ':xyzzy'\n  :help lists what there is"),
        (":quit now", ":quit stands alone, without 'now'"),
        (":with", ":with which fact?\n  write :with PREDICATE(CONSTANT, ...)"),
        (":without  ", ":without which fact?\n  write :without PREDICATE(CONSTANT, ...)"),
    ],
)
def test_other_commands_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        Line.read(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "start", "texts"),
    [
        (":w", 0, (":why ", ":with ", ":without ")),
        ("  :q", 2, (":quit",)),
        (":", 0, tuple(f"{c} " if c in (":why", ":with", ":without", ":top") else c for c in COMMANDS)),
        (":nothing", 0, ()),
        (":top li", 7, ()),
        (":why lie", 5, ("liesIn(",)),
        (" :why liesIn(n1, n", 17, ("north)",)),
        (":why liesIn(n1, ", 16, ("?)", "north)", "south)")),
        (":with liesIn(n1, ", 17, ("north)", "south)")),
        (":without !lie", 10, ("liesIn(",)),
        ("liesIn(n1, so", 11, ("south)",)),
    ],
)
def test_how_lines_go_on(text: str, start: int, texts: tuple[str, ...], toy: Problem) -> None:
    found = complete_line(toy.knowledge.language, text, len(text))
    assert found.start == start
    assert found.texts[: len(texts)] == texts
    assert texts or not found.texts


def test_the_text_behind_the_cursor_stays(toy: Problem) -> None:
    language = toy.knowledge.language
    assert complete_line(language, ":wit liesIn(n1, north)", 4) == Completions(0, (":with", ":without"))
    assert complete_line(language, "  :why", 1) == Completions(1, ("liesIn", "near"))
