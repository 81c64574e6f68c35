"""The prompt of r2n ask: history and completion."""

import stat
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from r2n.cli.asking_prompt import MOST_REMEMBERED, LineCompleter, QuestionHistory, history_file, prompt_of
from r2n.data.problem import Problem


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_the_history_is_in_the_users_state_folder(state: Path) -> None:
    assert history_file() == state / "r2n" / "questions.txt"


def test_questions_are_kept_and_nothing_else(state: Path) -> None:
    history = QuestionHistory(history_file())
    for line in ("liesIn(n1, ?)", ":with near(secret, n1)", "", ":why 1", "near(n1, ?)\n:quit\nliesIn(ö, ?)"):
        history.append_string(line)
    assert history_file().read_text(encoding="utf-8") == "liesIn(n1, ?)\nnear(n1, ?)\nliesIn(ö, ?)\n"
    assert stat.S_IMODE(history_file().stat().st_mode) == 0o600
    assert list(QuestionHistory(history_file()).load_history_strings()) == [
        "liesIn(ö, ?)",
        "near(n1, ?)",
        "liesIn(n1, ?)",
    ]
    assert ":why 1" in history.get_strings()  # in the session itself


def test_no_more_than_the_last_are_remembered(state: Path) -> None:
    path = history_file()
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"p({i})\n" for i in range(MOST_REMEMBERED + 5)))
    loaded = list(QuestionHistory(path).load_history_strings())
    assert (len(loaded), loaded[0], loaded[-1]) == (MOST_REMEMBERED, f"p({MOST_REMEMBERED + 4})", "p(5)")


@pytest.mark.parametrize("trouble", ["no folder", "a folder", "no text"])
def test_a_history_that_cannot_be_had_is_done_without(trouble: str, state: Path) -> None:
    path = history_file()
    if trouble == "no folder":
        state.write_text("a file in its place")
    else:
        path.parent.mkdir(parents=True)
        path.mkdir() if trouble == "a folder" else path.write_bytes(b"\xff\xfe\n")
    history = QuestionHistory(path)
    list(history.load_history_strings())
    history.append_string("liesIn(n1, ?)")
    assert history.get_strings() == ["liesIn(n1, ?)"]


def test_completions_are_told_from_the_cursor(toy: Problem) -> None:
    completer = LineCompleter(lambda: toy.knowledge.language)
    found = list(completer.get_completions(Document(":why liesIn(n1, no"), CompleteEvent()))
    assert [(each.text, each.start_position, each.display_text) for each in found] == [("north)", -2, "north)")]


def test_lines_interrupts_and_the_end(toy: Problem, state: Path) -> None:
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        prompt = prompt_of(lambda: "towns", lambda: toy.knowledge.language)
        keys.send_text("liesIn(n1, ?)\r")
        assert prompt() == "liesIn(n1, ?)"
        keys.send_text("half a line\x03")
        with pytest.raises(KeyboardInterrupt):
            prompt()
        keys.send_text("\x1b[A\r")  # the arrow up
        assert prompt() == "liesIn(n1, ?)"
        keys.send_text("\x04")
        with pytest.raises(EOFError):
            prompt()
    assert history_file().read_text() == "liesIn(n1, ?)\n"
