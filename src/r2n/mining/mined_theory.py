"""Mined rules and constraints -> the text of a theory file, with what was counted above each of them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from r2n.errors import ConfigError
from r2n.files import write_atomically
from r2n.logic.parser import THEORY_SUFFIX
from r2n.logic.theory import Theory
from r2n.mining.constraints import Constraint, constraint_rules
from r2n.mining.mined_rules import MinedRule


def mined_theory(
    theory: Theory, mined: Sequence[MinedRule], constraints: Sequence[Constraint] = (), *, fresh: bool = False
) -> tuple[Theory, str]:
    """The theory with mined rules and constraints behind its own rules (without those: `fresh`), and its text.

    The text states the theory, the counts of each rule in a comment above it; ranges are in comments only.
    """
    own = () if fresh else theory.rules
    taken = frozenset(rule.name for rule in (*theory.rules, *(part.rule for part in mined)))
    commented = [(part.rule, str(part)) for part in mined]
    commented += [(rule, str(constraint)) for rule, constraint in constraint_rules(tuple(constraints), taken)]
    ranges = [constraint for constraint in constraints if constraint.formula() is None]
    lines = [f"# {_in_one_line(str(constraint))}\n" for constraint in ranges]
    lines += [f"# {_in_one_line(comment)}\n{rule}\n" for rule, comment in commented]
    whole = replace(theory, rules=(*own, *(rule for rule, _ in commented)))
    return whole, str(replace(theory, rules=own)) + "".join(lines)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def check_theory_path(path: Path) -> None:
    """Refuse a file that no theory can be written to, before any work is done."""
    if path.suffix != THEORY_SUFFIX:
        raise ConfigError(f"{path} does not end in {THEORY_SUFFIX}", hint=f"call it {path.stem}{THEORY_SUFFIX}")
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"{path} cannot be written", hint="give a file in a folder that is there")


def write_theory(path: Path, text: str) -> None:
    """Write a theory file, whole or not at all."""
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
