"""The command line: the prompt of r2n ask on a terminal, with history and completion."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from platformdirs import user_state_path
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from r2n.cli.asking_lines import complete_line
from r2n.cli.screen import shortened
from r2n.logic.language import Language

MOST_REMEMBERED = 1_000
LONGEST_SHOWN = 60


def history_file() -> Path:
    """Where questions are kept from one session to the next: the user's state folder."""
    return user_state_path("r2n", appauthor=False) / "questions.txt"


class QuestionHistory(History):
    """The lines of this session, and the questions of those before it, one to a line of a file.

    A file that cannot be read or written is done without.
    """

    def __init__(self, path: Path) -> None:
        """`path` need not be there."""
        super().__init__()
        self.path = path

    def load_history_strings(self) -> Iterable[str]:
        """The last questions, the newest first."""
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return []
        return [line for line in lines if line][: -MOST_REMEMBERED - 1 : -1]

    def store_string(self, string: str) -> None:
        """Keep a line where it is a question: what is told in a session ends with it."""
        questions = [line.strip() for line in string.split("\n")]
        kept = "".join(f"{line}\n" for line in questions if line and not line.startswith(":"))
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            opened = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)  # for the user alone
            with os.fdopen(opened, "w", encoding="utf-8", errors="replace") as file:
                file.write(kept)
        except OSError:
            return


class LineCompleter(Completer):
    """How a line may go on, in the language as it is now."""

    def __init__(self, language: Callable[[], Language]) -> None:
        """`language` is asked each time: new facts may bring new constants."""
        self.language = language

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """For the text before the cursor."""
        cursor = document.cursor_position
        found = complete_line(self.language(), document.text, cursor)
        for text in found.texts:
            yield Completion(text, found.start - cursor, display=shortened(text.strip(), LONGEST_SHOWN))


def prompt_of(title: Callable[[], str], language: Callable[[], Language]) -> Callable[[], str]:
    """A function that asks for a line. Ctrl-C is a KeyboardInterrupt, Ctrl-D an EOFError, as Python's own input is."""
    session: PromptSession[str] = PromptSession(
        history=QuestionHistory(history_file()),
        completer=LineCompleter(language),
        complete_while_typing=False,
    )
    return lambda: session.prompt(f"{shortened(title(), LONGEST_SHOWN)}> ")
