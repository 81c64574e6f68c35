"""The command line: the lines that r2n ask takes, what each is for, and how one may go on."""

from dataclasses import dataclass

from r2n.errors import ConfigError, nearest
from r2n.logic.language import Language
from r2n.model.questions import Completions, complete

HELP = {
    "PREDICATE(CONSTANT, ?)": "ask; ? stands for what is asked, and an atom without ? is asked alone",
    ":why ATOM": "why an atom is answered as it is; :why N, the N-th of the last answers (the first)",
    ":with FACT": "know a fact too; with ! before it, know that it is false",
    ":without FACT": "know a fact no longer",
    ":facts": "what was changed so far",
    ":reset": "the facts as they were at the start",
    ":top N": "show so many answers",
    ":help": "this list",
    ":quit": "the end, as Ctrl-D is",
}
WITH_WORDS = tuple(usage.split()[0] for usage in HELP if usage.startswith(":") and " " in usage)
COMMANDS = tuple(usage.split()[0] for usage in HELP if usage.startswith(":"))
OF_FACTS = (":with", ":without")
OF_ATOMS = (":why", *OF_FACTS)


@dataclass(frozen=True, slots=True)
class Line:
    """What was typed: a command and what stands behind it; of a question the command is empty."""

    command: str
    words: str

    @classmethod
    def read(cls, text: str) -> "Line":
        """`:why locatedIn(italy, europe)` in its two parts; a command that there is not is refused."""
        text = text.strip()
        if not text.startswith(":"):
            return cls("", text)
        command, _, words = text.partition(" ")
        if command not in COMMANDS:
            raise ConfigError(
                f"there is no '{command}'", hint=nearest(command, COMMANDS) or ":help lists what there is"
            )
        words = words.strip()
        if words and command not in WITH_WORDS:
            raise ConfigError(f"{command} stands alone, without '{words}'")
        if not words and command in OF_FACTS:
            raise ConfigError(f"{command} which fact?", hint=f"write {command} PREDICATE(CONSTANT, ...)")
        return cls(command, words)


def complete_line(language: Language, text: str, cursor: int) -> Completions:
    """How a line may go on at the cursor: commands by their names, atoms as questions and facts do."""
    first = len(text) - len(text.lstrip())
    if not text.startswith(":", first) or cursor <= first:
        return complete(language, text, cursor)
    command, space, _ = text[first:cursor].partition(" ")
    if not space:
        found = [name for name in COMMANDS if name.startswith(command)]
        is_last = not text[cursor:].strip()
        return Completions(first, tuple(name + " " * (is_last and name in WITH_WORDS) for name in found))
    if command not in OF_ATOMS:
        return Completions(cursor)
    begin = first + len(command) + 1
    found = complete(language, text[begin:], cursor - begin, is_fact=command in OF_FACTS)
    return Completions(begin + found.start, found.texts)
