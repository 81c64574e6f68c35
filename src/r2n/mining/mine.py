"""Mining: Horn rules that hold in the evidence of a knowledge base, with their counts, and the theory file of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from time import monotonic

from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.problem import Problem
from r2n.errors import ConfigError, TheoryError
from r2n.files import write_atomically
from r2n.logic.parser import THEORY_SUFFIX
from r2n.logic.theory import Theory
from r2n.mining.constraints import Constraint, constraint_rules
from r2n.mining.searches import (
    Ends,
    Found,
    MinedRule,
    MiningOptions,
    PathWalker,
    StepGraph,
    search_constant_rules,
    search_paths,
)
from r2n.progress import Progress, no_progress

FOUND_BETWEEN_CUTS = 1000


@dataclass(frozen=True)
class Mining:
    """The rules, by head, by length and the best first."""

    rules: tuple[MinedRule, ...]
    unwritable: int = 0  # rules left out because no domain of the theory fits one of their variables
    stopped: str | None = None  # where the search was when the time was over, if it was

    @property
    def sampled(self) -> int:
        """How many of the rules were counted on a sample."""
        return sum(mined.sample is not None for mined in self.rules)


def mine(
    problem: Problem,
    *,
    max_length: int = MiningOptions.max_length,
    max_rules: int = MiningOptions.max_rules,
    min_support: int = MiningOptions.min_support,
    min_confidence: float = MiningOptions.min_confidence,
    constants: bool = MiningOptions.constants,
    seconds: float | None = None,
    progress: Progress = no_progress,
) -> Problem:
    """The problem with Horn rules that its facts support, added to its own rules; `MiningOptions` says what they are.

    >>> facts = [(name, f"c{i}", f"c{i + 1}") for i in range(9) for name in ("near", "linked")]
    >>> mine(Problem.from_facts(facts)).knowledge.theory.rules[0].name
    'm0'
    """
    options = MiningOptions(max_length, max_rules, min_support, min_confidence, constants, seconds)
    theory = mined_theory(problem.knowledge.theory, mine_rules(problem.knowledge, options, progress).rules)[0]
    return replace(problem, knowledge=replace(problem.knowledge, theory=theory))


def mine_rules(
    knowledge: KnowledgeBase, options: MiningOptions | None = None, progress: Progress = no_progress
) -> Mining:
    """Mine the true facts of binary predicates; the rules are named m0, m1, ..., and weigh their confidences."""
    options = options or MiningOptions()
    graph = StepGraph.from_knowledge(knowledge)
    kinds, stopped = _search(graph, options, progress)
    taken = {rule.name for rule in knowledge.theory.rules}
    names = (name for name in (f"m{i}" for i in count()) if name not in taken)
    rules, unwritable = list[MinedRule](), 0
    rows = [(int(p), kind, row) for kind, found in enumerate(kinds) for row, p in enumerate(found.predicate)]
    for _, kind, row in sorted(rows):
        mined = kinds[kind].mined(row, graph.predicates, graph.language.constants)
        try:
            knowledge.theory.variable_domains(mined.rule)
        except TheoryError:
            unwritable += 1
        else:
            rule = replace(mined.rule, name=next(names), weight=float(f"{mined.confidence:.4g}"))
            rules.append(replace(mined, rule=rule))
    return Mining(tuple(rules), unwritable, stopped)


def _search(graph: StepGraph, options: MiningOptions, progress: Progress) -> tuple[list[Found], str | None]:
    """The best rules of each kind, short ones first, and where the search was when the time was over."""
    deadline = None if options.seconds is None else monotonic() + options.seconds
    walker = PathWalker(graph, options.most_walks, options.seed)
    lengths = range(1, options.max_length + 1)
    kinds = {f"bodies of length {length}": search_paths(walker, length, options) for length in lengths}
    if options.constants:
        kinds["rules with constants"] = search_constant_rules(Ends.from_graph(graph, options.min_support), options)
    best: list[Found] = []
    for number, (kind, parts) in enumerate(kinds.items()):
        found, stopped = list[Found](), None
        for done, total, more in parts:
            if more is None:  # one kind of rules is a thousand steps, however many parts its search has
                progress("mine", 1000 * number + 1000 * done // total, 1000 * len(kinds))
            else:
                found.append(more)
            if len(found) >= FOUND_BETWEEN_CUTS:
                found = [Found.joined(found).best(options.max_rules)]
            if deadline is not None and done < total and monotonic() > deadline:
                stopped = f"{kind}, after {done:,} of {total:,} parts of the search"
                break
        best += [Found.joined(found).best(options.max_rules)] if found else []
        if stopped is not None:
            return best, stopped
    return best, None


def mined_theory(
    theory: Theory, mined: Sequence[MinedRule], constraints: Sequence[Constraint] = (), *, fresh: bool = False
) -> tuple[Theory, str]:
    """The theory with mined rules and constraints behind its own rules (without those: `fresh`), and its text.

    The text states the theory, the counts of each rule in a comment above it.
    """
    own = () if fresh else theory.rules
    taken = frozenset(rule.name for rule in (*theory.rules, *(part.rule for part in mined)))
    commented = [(part.rule, str(part)) for part in mined]
    commented += [(rule, str(constraint)) for rule, constraint in constraint_rules(tuple(constraints), taken)]
    lines = [f"# {' '.join(comment.split())}\n{rule}\n" for rule, comment in commented]
    extended = replace(theory, rules=(*own, *(rule for rule, _ in commented)))
    return extended, str(replace(theory, rules=own)) + "".join(lines)


def check_theory_path(path: Path) -> None:
    """Refuse a file that no theory can be written to, before any work is done."""
    if path.suffix != THEORY_SUFFIX:
        raise ConfigError(f"{path} does not end in {THEORY_SUFFIX}", hint=f"call it {path.stem}{THEORY_SUFFIX}")
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"{path} cannot be written", hint="give a file in a folder that is there")


def write_theory(path: Path, text: str) -> None:
    """Write a theory file, completely or not at all."""
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
