"""The command line: one loaded network and many lines of r2n ask, each with what it tells."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from r2n.cli.asking_lines import HELP, Line
from r2n.cli.prediction import Wanted, answers_document, changes_told, print_answers, print_tree
from r2n.cli.screen import ScreenTable, screen, shortened
from r2n.data.atom_text import parse_atom, written_atom
from r2n.errors import ConfigError, counted
from r2n.visible import visible

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    from r2n.model.answers import Answers
    from r2n.model.predictor import Predictor


MOST = 1_000_000_000  # answers


@dataclass(frozen=True, slots=True)
class Told:
    """What a line tells: a JSON document, or what `show` prints."""

    document: dict[str, Any]
    show: Callable[[], None]


@dataclass(frozen=True, eq=False)
class Known:
    """A predictor, and the facts that it knows more and fewer than its run."""

    predictor: "Predictor"
    more: tuple[str, ...] = ()
    fewer: tuple[str, ...] = ()

    def with_fact(self, text: str) -> "Known":
        """Knowing a fact too; one that was taken back before is as it was."""
        predictor, fact = self.predictor.with_facts([text]), as_written(text)
        if fact in self.fewer:
            return Known(predictor, self.more, _without(self.fewer, fact))
        return Known(predictor, (*self.more, fact), self.fewer)

    def without_fact(self, text: str) -> "Known":
        """Knowing a fact no longer; one that was told before is as it was."""
        predictor, fact = self.predictor.without_facts([text]), as_written(text)
        if fact in self.more:
            return Known(predictor, _without(self.more, fact), self.fewer)
        return Known(predictor, self.more, (*self.fewer, fact))

    @property
    def commands(self) -> tuple[str, ...]:
        """The lines that lead from the run to here; what is taken back goes first, as for r2n predict."""
        return (*(f":without {fact}" for fact in self.fewer), *(f":with {fact}" for fact in self.more))


def as_written(text: str) -> str:
    """A fact in one way of writing it; the name of a file as it is."""
    atom = parse_atom(text)
    if atom is None:
        return text
    terms = [term for term in atom.terms if term is not None]
    return f"{'' if atom.truth else '!'}{written_atom(atom.predicate, terms)}"


def _whole(digits: str) -> int:
    """A number, or one beyond all that are taken: Python reads no more than some thousand digits."""
    return int(digits) if len(digits) <= len(str(MOST)) else MOST + 1


def _without(facts: tuple[str, ...], fact: str) -> tuple[str, ...]:
    place = len(facts) - 1 - facts[::-1].index(fact)
    return facts[:place] + facts[place + 1 :]


class Session:
    """What is known now, how many answers are wanted, and the last ones."""

    def __init__(self, start: Known, wanted: Wanted) -> None:
        """`start` is what is known after `:reset`."""
        self.start, self.known, self.wanted = start, start, wanted.copy()
        self.last: Answers | None = None
        self.commands: dict[str, Callable[[str], Told]] = {
            "": self._ask,
            ":why": self._why,
            ":with": lambda fact: self._change(self.known.with_fact(fact)),
            ":without": lambda fact: self._change(self.known.without_fact(fact)),
            ":facts": lambda _: self._facts(),
            ":reset": lambda _: self._change(self.start),
            ":top": self._top,
            ":help": lambda _: self._help(),
        }

    @property
    def title(self) -> str:
        """The problem, and how many facts are known more and fewer."""
        more, fewer = len(self.known.more), len(self.known.fewer)
        changes = [*[f"+{more}"] * bool(more), *[f"-{fewer}"] * bool(fewer)]
        return " ".join([self.known.predictor.changed.problem.name, *changes])

    def tell(self, text: str) -> Told | None:
        """What a line tells; None where it is the end."""
        line = Line.read(text)
        return None if line.command == ":quit" else self.commands[line.command](line.words)

    def _ask(self, question: str) -> Told:
        predictor = self.known.predictor
        self.last = answers = predictor.predict(question, **self.wanted)
        return Told(answers_document(question, answers), lambda: print_answers(predictor, answers, is_numbered=True))

    def _why(self, words: str) -> Told:
        found = self.known.predictor.explain(self._numbered(words or "1") if words.isdecimal() or not words else words)
        return Told(found.to_dict(), lambda: print_tree(found))

    def _numbered(self, number: str) -> str:
        """The atom of one of the last answers."""
        if self.last is None:
            raise ConfigError("nothing was answered yet", hint="ask first, or write :why ATOM")
        if not 1 <= _whole(number) <= len(self.last):
            raise ConfigError(
                f"there is no answer {shortened(number, 30)}: the last question has {counted(len(self.last), 'answer')}"
            )
        return self.last[int(number) - 1].question

    def _change(self, known: Known) -> Told:
        before = self.known
        is_first = not before.commands and bool(known.commands)
        notes = changes_told(known.predictor, facts_changed=is_first, but_not=before.predictor.changed.new_constants)
        self.known = known  # last of all: what is interrupted has changed nothing
        shown = [*notes, counted(len(known.predictor.changed.problem.train), "known atom")]
        return Told({**self._changes(), "notes": notes}, lambda: typer.echo(visible("\n".join(shown)), err=True))

    def _changes(self) -> dict[str, Any]:
        return {"with": list(self.known.more), "without": list(self.known.fewer)}

    def _facts(self) -> Told:
        lines = self.known.commands
        return Told(
            self._changes(), lambda: typer.echo(visible("\n".join(lines)) or "nothing was changed", err=not lines)
        )

    def _top(self, words: str) -> Told:
        if words:
            if not words.isdecimal() or not 1 <= _whole(words) <= MOST:
                raise ConfigError(f":top takes a number from 1 to {MOST:,}, not '{shortened(words, 30)}'")
            self.wanted["top"] = _whole(words)
        top = self.wanted["top"]
        words = "every answer" if top is None else f"at most {counted(top, 'answer')}"
        return Told({"top": top}, lambda: typer.echo(words, err=True))

    def _help(self) -> Told:
        return Told({"help": HELP}, _print_help)


def _print_help() -> None:
    table = ScreenTable(show_header=False, box=None)
    for usage, meaning in HELP.items():
        table.add_texts([usage, meaning])
    screen().print(table)
