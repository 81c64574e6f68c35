"""Mining: Horn rules and constraints that hold in the evidence of a knowledge base, and the theory file of them.

Constraints rule out candidates of a query.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Int64
from scipy.sparse import csr_array

from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.problem import Problem
from r2n.errors import ConfigError, TheoryError, nearest
from r2n.files import write_atomically
from r2n.logic.formula import Atom, Formula, Implies, Not, Unequal, Variable
from r2n.logic.parser import THEORY_SUFFIX
from r2n.logic.theory import Rule, Theory
from r2n.mining.searches import (
    Ends,
    Found,
    MinedRule,
    MiningOptions,
    PathWalker,
    StepGraph,
    binary_predicates,
    search_constant_rules,
    search_longer_constant_rules,
    search_paths,
)
from r2n.progress import Progress, no_progress

Kind = Literal["irreflexive", "asymmetric", "functional", "inverse-functional", "disjoint"]
KINDS: tuple[Kind, ...] = get_args(Kind)

EXPECTED_MEETINGS = 3.0
"""The least number of pairs that two predicates would share by chance, for it to matter that they share none."""

_X, _Y, _Z = Variable("x"), Variable("y"), Variable("z")


@dataclass(frozen=True, slots=True)
class Constraint:
    """What facts of one predicate, or of two, never do, but for `exceptions` of `support`.

    | kind | says | support counts | exceptions among them |
    |---|---|---|---|
    | irreflexive | !p(x, x) | facts of p | loops p(x, x) |
    | asymmetric | p(x, y) -> !p(y, x), x != y | facts p(x, y) with an atom p(y, x) | those with a fact p(y, x) |
    | functional | p(x, y) -> !p(x, z), y != z | constants x with p(x, .) | those with more than one |
    | inverse-functional | p(x, y) -> !p(z, y), x != z | constants y with p(., y) | those with more than one |
    | disjoint | p(x, y) -> !q(x, y) | facts of the rarer predicate | facts of both |
    """

    kind: Kind
    predicates: tuple[str, ...]
    support: int
    exceptions: int

    @property
    def share_of_exceptions(self) -> float:
        """Exceptions per support."""
        return self.exceptions / self.support

    def formula(self) -> tuple[Formula, tuple[Unequal, ...]]:
        """The constraint as an implication with guards, which facts ground."""
        p, q = self.predicates[0], self.predicates[-1]
        known = Atom(p, (_X, _Y))
        written: dict[Kind, tuple[Formula, tuple[Unequal, ...]]] = {
            "irreflexive": (Not(Atom(p, (_X, _X))), ()),
            "asymmetric": (Implies(known, Not(Atom(p, (_Y, _X)))), (Unequal(_X, _Y),)),
            "functional": (Implies(known, Not(Atom(p, (_X, _Z)))), (Unequal(_Y, _Z),)),
            "inverse-functional": (Implies(known, Not(Atom(p, (_Z, _Y)))), (Unequal(_X, _Z),)),
            "disjoint": (Implies(known, Not(Atom(q, (_X, _Y)))), ()),
        }
        return written[self.kind]

    def __str__(self) -> str:
        """`functional _hypernym: support 120, exceptions 3`."""
        return f"{self.kind} {' and '.join(self.predicates)}: support {self.support}, exceptions {self.exceptions}"


def mine_constraints(
    knowledge: KnowledgeBase, max_exceptions: float = 0.0, min_support: int = 3
) -> tuple[Constraint, ...]:
    """The constraints of the binary predicates whose share of exceptions among the true facts is small enough."""
    found = _constraints(knowledge)
    return tuple(c for c in found if c.support >= min_support and c.share_of_exceptions <= max_exceptions)


def _constraints(knowledge: KnowledgeBase) -> Iterator[Constraint]:
    """All constraints of one predicate, and of two over the same domains that would share pairs by chance."""
    language, predicates = knowledge.language, binary_predicates(knowledge)
    facts = [knowledge.facts(predicate) for predicate in predicates]
    for predicate, rows in zip(predicates, facts, strict=True):
        name, members = (predicate.name,), [language.members(domain) for domain in predicate.domains]
        no_loops = rows[rows[:, 0] != rows[:, 1]]
        if len(np.intersect1d(members[0], members[1])):
            yield Constraint("irreflexive", name, len(rows), len(rows) - len(no_loops))
            inverse = knowledge.base.encode_columns(predicate, [no_loops[:, 1], no_loops[:, 0]])
            is_known = np.isin(inverse, knowledge.known_codes(predicate, True))
            yield Constraint("asymmetric", name, int((inverse >= 0).sum()), int(is_known.sum()))
        kinds: tuple[Kind, Kind] = ("functional", "inverse-functional")
        for position, kind in enumerate(kinds):
            number = np.unique(rows[:, position], return_counts=True)[1]
            yield Constraint(kind, name, len(number), int((number > 1).sum()))
    keys = np.concatenate([rows[:, 0] * len(language.constants) + rows[:, 1] for rows in facts])
    index = np.repeat(np.arange(len(facts)), [len(rows) for rows in facts])
    pairs, number = np.unique(keys, return_inverse=True)
    held = csr_array((np.ones(len(keys), np.int64), (index, number)), shape=(len(facts), len(pairs)))
    shared = csr_array(held @ held.T).toarray()
    sizes = np.diagonal(shared)
    room = np.array([np.prod([float(len(language.members(d))) for d in p.domains]) for p in predicates])
    expected = np.triu(sizes[:, None] * sizes[None, :] / np.maximum(room, 1), 1)
    for i, j in np.argwhere(expected >= EXPECTED_MEETINGS).tolist():
        if predicates[i].domains == predicates[j].domains:
            names = (predicates[i].name, predicates[j].name)
            yield Constraint("disjoint", names, int(min(sizes[i], sizes[j])), int(shared[i, j]))


def constraint_rules(constraints: tuple[Constraint, ...], taken: frozenset[str]) -> tuple[tuple[Rule, Constraint], ...]:
    """The constraints as rules, named c0, c1, ... if not taken; their weight is 1 - share of exceptions."""
    names = (name for name in (f"c{i}" for i in count()) if name not in taken)
    weights = [float(f"{1 - constraint.share_of_exceptions:.4g}") for constraint in constraints]
    pairs = zip(constraints, weights, strict=True)
    return tuple((Rule.explicit(next(names), *part.formula(), weight=weight), part) for part, weight in pairs)


LEAST_SUPPORT = 30
"""By default: what 30 facts keep, hardly more than one in ten others breaks (1 - 0.05^(1/30))."""


@dataclass(frozen=True, eq=False)
class Constrained:
    """Constraints that known facts keep, and the candidates of rows that they forbid: as `rank` wants it."""

    knowledge: KnowledgeBase
    constraints: Sequence[Constraint]
    _facts: dict[str, csr_array] = field(default_factory=dict)

    @classmethod
    def from_knowledge(
        cls, knowledge: KnowledgeBase, kinds: Collection[str] = KINDS, min_support: int = LEAST_SUPPORT
    ) -> "Constrained":
        """Mine constraints of some kinds; they see what is known, and no query."""
        for kind in kinds:
            if kind not in KINDS:
                known = f"there are: {', '.join(KINDS)}"
                raise ConfigError(f"there is no kind of constraint '{kind}'", hint=nearest(kind, KINDS) or known)
        found = mine_constraints(knowledge, min_support=min_support)
        return cls(knowledge, tuple(constraint for constraint in found if constraint.kind in kinds))

    def __str__(self) -> str:
        """`irreflexive 40, disjoint 3`."""
        counts = Counter(constraint.kind for constraint in self.constraints)
        return ", ".join(f"{kind} {counts[kind]}" for kind in KINDS if counts[kind]) or "none found"

    def __call__(
        self, predicate: int, position: int, given: Int64[np.ndarray, "rows positions"]
    ) -> Bool[np.ndarray, "rows candidates"]:
        """Which candidates at a position would break a constraint as true atoms, given the other known facts.

        The candidates of a row are the constants of the position's domain, in the order of `language.members`;
        constraints speak of binary predicates alone.
        """
        asked = self.knowledge.language.predicates[predicate]
        members = self.knowledge.language.members(asked.domains[position])
        found = np.zeros((len(given), len(members)), bool)
        for constraint in self.constraints if asked.arity == 2 else ():
            if asked.name in constraint.predicates:
                first, second = (members, given[:, 1]) if position == 0 else (given[:, 0], members)
                atoms = self._broken(constraint, asked.name, first, second)
                found |= atoms.T if position == 0 else atoms
        return found

    def _broken(self, constraint: Constraint, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Whether p(x, y) breaks the constraint, for all x (rows) and y (columns)."""
        match constraint.kind:
            case "irreflexive":
                found = x[:, None] == y[None, :]
            case "asymmetric":
                found = (self._known(name, y, x).T > 0) & (x[:, None] != y[None, :])
            case "functional":
                found = np.asarray(self._matrix(name).sum(axis=1))[x][:, None] > self._known(name, x, y)
            case "inverse-functional":
                found = np.asarray(self._matrix(name).sum(axis=0))[y][None, :] > self._known(name, x, y)
            case "disjoint":
                found = self._known(constraint.predicates[constraint.predicates[0] == name], x, y) > 0
        return np.broadcast_to(found, (len(x), len(y)))

    def _known(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 where name(x, y) is a known true fact: (x, y)."""
        return self._matrix(name)[x][:, y].toarray()

    def _matrix(self, name: str) -> csr_array:
        """The known true facts of a predicate: (constants, constants)."""
        if name not in self._facts:
            language = self.knowledge.language
            rows, size = self.knowledge.facts(language.predicate(name)), len(language.constants)
            self._facts[name] = csr_array((np.ones(len(rows), np.int64), (rows[:, 0], rows[:, 1])), shape=(size, size))
        return self._facts[name]


FOUND_BETWEEN_CUTS = 1000


@dataclass(frozen=True)
class Mining:
    """The rules, by head, by length and the best first."""

    rules: tuple[MinedRule, ...]
    unwritable: int = 0  # rules left out because no domain of the theory fits one of their variables
    stopped: str | None = None  # where the search was when the time was over, if it was
    left_out: int = 0  # paths of more than `MOST_WALKS` walks


def mine(
    problem: Problem,
    *,
    max_length: int = MiningOptions.max_length,
    max_rules: int = MiningOptions.max_rules,
    min_support: int = MiningOptions.min_support,
    min_confidence: float = MiningOptions.min_confidence,
    constants: bool = MiningOptions.constants,
    constant_length: int = MiningOptions.constant_length,
    seconds: float | None = None,
    progress: Progress = no_progress,
) -> Problem:
    """The problem with Horn rules that its facts support, added to its own rules; `MiningOptions` says what they are.

    >>> facts = [(name, f"c{i}", f"c{i + 1}") for i in range(9) for name in ("near", "linked")]
    >>> mine(Problem.from_facts(facts)).knowledge.theory.rules[0].name
    'm0'
    """
    options = MiningOptions(
        max_length, max_rules, min_support, min_confidence, constants, seconds, constant_length=constant_length
    )
    theory = mined_theory(problem.knowledge.theory, mine_rules(problem.knowledge, options, progress).rules)[0]
    return replace(problem, knowledge=replace(problem.knowledge, theory=theory))


def mine_rules(
    knowledge: KnowledgeBase, options: MiningOptions | None = None, progress: Progress = no_progress
) -> Mining:
    """Mine the true facts of binary predicates; the rules are named m0, m1, ..., and weigh their confidences."""
    options = options or MiningOptions()
    graph = StepGraph.from_knowledge(knowledge)
    walker = PathWalker(graph)
    kinds, stopped = _search(walker, options, progress)
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
    return Mining(tuple(rules), unwritable, stopped, len(walker.left_out))


def _search(walker: PathWalker, options: MiningOptions, progress: Progress) -> tuple[list[Found], str | None]:
    """The best rules of each kind, short ones first, and where the search was when the time was over."""
    deadline = None if options.seconds is None else monotonic() + options.seconds
    lengths = range(options.min_length, options.max_length + 1)
    kinds = {f"bodies of length {length}": search_paths(walker, length, options) for length in lengths}
    if options.constants:
        ends = Ends.from_graph(walker.graph, options.min_support)
        kinds["rules with constants"] = search_constant_rules(ends, options)
        if options.constant_length > 1:
            kinds["longer rules with constants"] = search_longer_constant_rules(ends, options)
    best: list[Found] = []
    for number, (kind, parts) in enumerate(kinds.items()):
        most = options.max_rules if number < len(lengths) else options.max_constant_rules or options.max_rules
        found, stopped = list[Found](), None
        for done, total, more in parts:
            if more is None:  # one kind of rules is a thousand steps, however many parts its search has
                progress("mine", 1000 * number + 1000 * done // total, 1000 * len(kinds))
            else:
                found.append(more)
            if len(found) >= FOUND_BETWEEN_CUTS:
                found = [Found.joined(found).best(most)]
            if deadline is not None and done < total and monotonic() > deadline:
                stopped = f"{kind}, after {done:,} of {total:,} parts of the search"
                break
        best += [Found.joined(found).best(most)] if found else []
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
