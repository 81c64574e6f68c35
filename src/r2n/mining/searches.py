"""Mined rules with their counts, and searches for them in a step graph: paths as bodies, and rules with constants.

A search yields its `Part`s: (parts done, parts in all, what was found), with nothing found where a part begins.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from jaxtyping import Bool, Int64
from scipy.sparse import csr_array, vstack

from r2n.data.herbrand import RowIndex, index_among
from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import ConfigError, DataError
from r2n.grounding.counting import entries_at, returns_to_first_step, row_of_entries, without_diagonal
from r2n.logic.formula import And, Atom, Constant, Implies, Term, Unequal, Variable
from r2n.logic.language import Domain, Language, Predicate
from r2n.logic.theory import Rule

CAUTION = 5
"""Pairs added to a rule's body pairs when rules are compared: 1 hit in 1 pair is worth less than 80 in 100."""

MOST_STEPS = 3
MOST_WALKS = 20_000_000  # of a path: beyond, its pairs of constants hardly fit in memory
MOST_STEPS_TO_CONSTANT = 2

_BETWEEN = ("z", "w")
_X, _Y, _Z = Variable("x"), Variable("y"), Variable("z")


@dataclass(frozen=True, slots=True)
class MinedRule:
    """A rule with its counts of distinct pairs (x, y)."""

    rule: Rule
    support: int  # reached by the body, and the head is known
    body_pairs: int  # reached by the body
    pca_pairs: int  # reached by the body, and x has a known fact of the head's predicate

    @property
    def confidence(self) -> float:
        """The share of the reached pairs that are known."""
        return self.support / self.body_pairs

    @property
    def pca_confidence(self) -> float:
        """The same among pairs whose x has a known fact of the head's predicate: what else such an x has is false."""
        return self.support / self.pca_pairs

    def __str__(self) -> str:
        """The counts, as in a comment of a theory file."""
        numbers = f"confidence {self.confidence:.4f}, PCA confidence {self.pca_confidence:.4f}"
        return f"support {self.support} of {self.body_pairs} pairs, {numbers}"


@dataclass(frozen=True)
class MiningOptions:
    """Which rules are searched, and which are kept.

    `max_length`: atoms of a body, at least `min_length` without constants. `max_rules`: of each predicate as head and
    each length, so that long rules, which are many, do not push out short ones; rules with `constants` have a limit of
    their own for each length up to `constant_length`, `max_constant_rules` if that is given. `seconds` ends the search
    early.
    """

    max_length: int = 2
    max_rules: int = 100
    min_support: int = 3
    min_confidence: float = 0.01
    constants: bool = False
    seconds: float | None = None
    constant_length: int = 1
    min_length: int = 1
    max_constant_rules: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.max_length <= MOST_STEPS:
            what = f"bodies of {self.max_length} atoms cannot be mined"
            raise ConfigError(what, hint=f"max_length is 1 to {MOST_STEPS}")
        if not 1 <= self.min_length <= self.max_length:
            what = f"bodies of {self.min_length} to {self.max_length} atoms: there are none"
            raise ConfigError(what, hint="min_length is 1 to max_length")
        if not 1 <= self.constant_length <= MOST_STEPS_TO_CONSTANT:
            what = f"bodies of {self.constant_length} atoms with a constant at the end cannot be mined"
            raise ConfigError(what, hint=f"constant_length is 1 to {MOST_STEPS_TO_CONSTANT}")
        for name in ("max_rules", "min_support", "max_constant_rules"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ConfigError(f"{name} is {value}", hint="give at least 1")
        if not 0 <= self.min_confidence <= 1:
            raise ConfigError(f"min_confidence is {self.min_confidence}", hint="give a share from 0 to 1")
        if self.seconds is not None and not self.seconds > 0:
            raise ConfigError(f"seconds is {self.seconds}", hint="give more than 0")


@dataclass(frozen=True, eq=False)
class Found:
    """Rules of one kind and their counts, as columns.

    A `head` is a step and a constant: p(x, y) is step 2p and -1, p(x, c) step 2p and c, p(c, y) step 2p + 1 and c. A
    `body` is a path of steps, or under a head with a constant steps and a constant, -1 if it is a variable.
    """

    head: Int64[np.ndarray, "rules 2"]
    body: Int64[np.ndarray, "rules parts"]
    support: Int64[np.ndarray, " rules"]
    body_pairs: Int64[np.ndarray, " rules"]
    pca_pairs: Int64[np.ndarray, " rules"]

    def __len__(self) -> int:
        return len(self.support)

    @classmethod
    def joined(cls, parts: "Sequence[Found]") -> "Found":
        """All rules of several parts, of which there is at least one."""
        return cls(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls)))

    @property
    def predicate(self) -> Int64[np.ndarray, " rules"]:
        """The head's predicate."""
        return self.head[:, 0] // 2

    def best(self, most: int) -> "Found":
        """At most `most` for each predicate of a head, the best first by confidence with `CAUTION`, then by support."""
        score = self.support / (self.body_pairs + CAUTION)
        order = np.lexsort((*self.body.T[::-1], *self.head.T[::-1], -self.support, -score, self.predicate))
        predicate = self.predicate[order]
        rank = np.arange(len(order)) - np.searchsorted(predicate, predicate)
        return Found(*(getattr(self, column.name)[order[rank < most]] for column in fields(self)))

    def mined(self, row: int, predicates: Sequence[Predicate], constants: Sequence[str]) -> MinedRule:
        """One of the rules, in symbols."""
        head, body = self.head[row].tolist(), self.body[row].tolist()
        rule = path_rule(predicates, head, body) if head[1] < 0 else constant_rule(predicates, constants, head, body)
        return MinedRule(rule, *(int(column[row]) for column in (self.support, self.body_pairs, self.pca_pairs)))


def path_rule(predicates: Sequence[Predicate], head: Sequence[int], steps: Sequence[int]) -> Rule:
    """The rule of a path: `q(x, z) & s(y, z) -> p(x, y)`, its variables distinct."""
    nodes = [_X, *map(Variable, _BETWEEN[: len(steps) - 1]), _Y]
    body = [_step_atom(predicates, step, *ends) for step, ends in zip(steps, pairwise(nodes), strict=True)]
    return _rule(body, _step_atom(predicates, head[0], _X, _Y), [_X, _Y, *nodes[1:-1]], ())


def constant_rule(
    predicates: Sequence[Predicate], constants: Sequence[str], head: Sequence[int], body: Sequence[int]
) -> Rule:
    """`q(x, "d") -> p(x, "c")` of steps and a constant; `q(x, z)` for a body whose constant is -1."""
    free, (*steps, last) = _X if head[0] % 2 == 0 else _Y, body
    between = [Variable(name) for name in _BETWEEN[: len(steps) - (last >= 0)]]
    terms = [Constant(constants[c]) for c in (head[1], last) if c >= 0]
    nodes = [free, *between, *terms[1:]]
    premise = [_step_atom(predicates, step, *ends) for step, ends in zip(steps, pairwise(nodes), strict=True)]
    return _rule(
        premise, _step_atom(predicates, head[0], free, terms[0]), [free, *between], tuple(dict.fromkeys(terms))
    )


def _step_atom(predicates: Sequence[Predicate], step: int, start: Term, end: Term) -> Atom:
    return Atom(predicates[step // 2].name, (start, end) if step % 2 == 0 else (end, start))


def _rule(body: list[Atom], head: Atom, variables: list[Variable], fixed: tuple[Constant, ...]) -> Rule:
    """Variables are distinct from each other and from the constants of the rule."""
    guards = [Unequal(*pair) for pair in combinations(variables, 2)]
    guards += [Unequal(variable, constant) for variable in variables for constant in fixed]
    return Rule.explicit("mined", Implies(body[0] if len(body) == 1 else And(tuple(body)), head), tuple(guards))


MOST_MEETINGS = 20_000_000
"""Members that the ends of one part of the search share with other ends, each counted once for each."""

Part = tuple[int, int, Found | None]


@dataclass(frozen=True, eq=False)
class StepGraph:
    """The true facts of the binary predicates as directed steps between constants (by id), without loops.

    Step 2i leads from x to y if the i-th predicate holds of (x, y), step 2i + 1 from y to x. `steps` are matrices
    (constants, constants) of ones. `known_first` (predicates, constants) is 1 if p(x, .) is known for some second
    constant, loops included. `pairs` indexes `between`, the predicate of each fact, by the key x * constants + y.
    """

    language: Language
    predicates: tuple[Predicate, ...]
    steps: tuple[csr_array, ...]
    known_first: csr_array
    pairs: RowIndex
    between: Int64[np.ndarray, " facts"]

    @classmethod
    def from_knowledge(cls, knowledge: KnowledgeBase) -> "StepGraph":
        """The graph of the evidence of a knowledge base, never of queries."""
        language, predicates = knowledge.language, binary_predicates(knowledge)
        constants = len(language.constants)
        facts = [knowledge.facts(predicate) for predicate in predicates]
        if not any(map(len, facts)):
            hint = "give the problem facts: [facts] train ="
            raise DataError("there is no true fact of a binary predicate to mine", hint=hint)
        no_loops = [rows[rows[:, 0] != rows[:, 1]] for rows in facts]
        steps = [
            _ones(rows[:, start], rows[:, 1 - start], (constants, constants)) for rows in no_loops for start in (0, 1)
        ]
        known = [_ones(np.zeros_like(rows[:, 0]), rows[:, 0], (1, constants)) for rows in facts]
        keys = np.concatenate([rows[:, 0] * constants + rows[:, 1] for rows in no_loops])
        index = np.repeat(np.arange(len(no_loops)), [len(rows) for rows in no_loops])
        order = np.argsort(keys, kind="stable")
        first = csr_array(vstack(known))
        return cls(language, predicates, tuple(steps), first, RowIndex.from_rows(keys[order]), index[order])

    @property
    def constants(self) -> int:
        """The number of constants of the language."""
        return len(self.language.constants)

    def facts_between(self, x: np.ndarray, y: np.ndarray) -> tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]]:
        """The facts between pairs of constants: for each the index of its pair, and its predicate."""
        which, fact = self.pairs.entries(x * self.constants + y)
        return which, self.between[fact]

    @cached_property
    def edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All steps as columns: from x, which step, to c."""
        step = np.repeat(np.arange(len(self.steps)), [matrix.nnz for matrix in self.steps])
        x = np.concatenate([row_of_entries(matrix) for matrix in self.steps]).astype(np.int64)
        return x, step, np.concatenate([matrix.indices for matrix in self.steps]).astype(np.int64)

    @cached_property
    def leaving(self) -> csr_array:
        """How many constants each step leads to from each constant: (steps, constants)."""
        return csr_array(vstack([csr_array(np.diff(step.indptr)[None, :]) for step in self.steps]))

    @cached_property
    def inside(self) -> dict[Domain, Bool[np.ndarray, " constants"]]:
        """For each domain of a binary predicate, which constants are in it."""
        domains = dict.fromkeys(domain for predicate in self.predicates for domain in predicate.domains)
        every = np.arange(self.constants)
        return {domain: np.isin(every, self.language.members(domain)) for domain in domains}

    @cached_property
    def concluded(self) -> Bool[np.ndarray, " predicates"]:
        """Which predicates rules may conclude: of a closed one all is known already."""
        return np.array([not predicate.closed for predicate in self.predicates], bool)


def binary_predicates(knowledge: KnowledgeBase) -> tuple[Predicate, ...]:
    """The binary predicates but reciprocals, which state nothing new."""
    found = tuple(p for p in knowledge.language.predicates if p.arity == 2 and p.reciprocal_of is None)
    if not found:
        what = "the problem has no binary predicate, and rules are mined from facts p(x, y)"
        raise DataError(what, hint="give it facts of predicates with two positions")
    return found


def _ones(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_array:
    """A matrix that is 1 at these entries, also at those that are given several times."""
    matrix = csr_array((np.ones(len(rows), np.int64), (rows, columns)), shape=shape)
    matrix.data[:] = 1
    return matrix


@dataclass(frozen=True, eq=False)
class PathBody:
    """A path of steps, and how many walks lead from x to y over distinct constants.

    `counts` (constants, constants) is off the diagonal and may store zeros.
    """

    steps: tuple[int, ...]
    counts: csr_array

    def pairs(self) -> tuple[Int64[np.ndarray, " pairs"], Int64[np.ndarray, " pairs"]]:
        """The distinct pairs (x, y) that are reached, as two columns."""
        reached = self.counts.data > 0
        x, y = row_of_entries(self.counts)[reached], self.counts.indices[reached]
        return x.astype(np.int64), y.astype(np.int64)


@dataclass(frozen=True)
class PathWalker:
    """Paths of a graph; those of more than `MOST_WALKS` walks are `left_out`."""

    graph: StepGraph
    left_out: set[tuple[int, ...]] = field(default_factory=set)

    def extended(self, prefix: PathBody) -> Iterator[PathBody]:
        """The paths of one step more that lead anywhere; the prefix has one step or two."""
        walks = np.asarray(self.graph.leaving @ prefix.counts.sum(axis=0))
        for last in np.flatnonzero(walks).tolist():
            steps, matrix = (*prefix.steps, last), self.graph.steps[last]
            if walks[last] > MOST_WALKS:
                self.left_out.add(steps)
                continue
            counts = csr_array(prefix.counts @ matrix)
            if len(steps) == MOST_STEPS:
                first, second = (self.graph.steps[step] for step in prefix.steps)
                counts = csr_array(counts - returns_to_first_step(first, second, matrix))
            yield PathBody(steps, without_diagonal(counts))


def count_heads(graph: StepGraph, path: PathBody) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Support, body pairs and PCA pairs of a path, within the domains of each predicate as head: (predicates,) each."""
    x, y = path.pairs()
    support = np.bincount(graph.facts_between(x, y)[1], minlength=len(graph.predicates))
    body_pairs, pca_pairs = np.zeros_like(support), np.zeros_like(support)
    for domains in dict.fromkeys(predicate.domains for predicate in graph.predicates):
        which = np.array([predicate.domains == domains for predicate in graph.predicates])
        if not support[which].any():
            continue
        first, second = (graph.inside[domain] for domain in domains)
        reached = np.bincount(x[first[x] & second[y]], minlength=graph.constants)
        body_pairs[which] = reached.sum()
        pca_pairs[which] = (graph.known_first @ reached)[which]
    return support, body_pairs, pca_pairs


def path_rules(graph: StepGraph, path: PathBody, options: MiningOptions) -> Found:
    """The rules of a path as body that pass the options."""
    support, body_pairs, pca_pairs = count_heads(graph, path)
    passes = (support >= options.min_support) & (support >= options.min_confidence * body_pairs)
    passes &= graph.concluded
    if len(path.steps) == 1 and path.steps[0] % 2 == 0:
        passes[path.steps[0] // 2] = False  # p(x, y) -> p(x, y)
    heads = np.flatnonzero(passes)
    return Found(
        np.stack([2 * heads, np.full_like(heads, -1)], axis=1),
        np.tile(np.array(path.steps, np.int64), (len(heads), 1)),
        *(counts[heads] for counts in (support, body_pairs, pca_pairs)),
    )


def paths_from(walker: PathWalker, prefix: PathBody, length: int) -> Iterator[PathBody]:
    """The paths of a length that begin with a prefix; one without any walk is not extended."""
    if len(prefix.steps) == length:
        yield prefix
        return
    for longer in walker.extended(prefix):
        yield from paths_from(walker, longer, length)


def search_paths(walker: PathWalker, length: int, options: MiningOptions) -> Iterator[Part]:
    """The rules with bodies of `length` steps; a part of the search is a first step."""
    total = len(walker.graph.steps)
    for step in range(total):
        yield step, total, None
        for path in paths_from(walker, PathBody((step,), walker.graph.steps[step]), length):
            yield step, total, path_rules(walker.graph, path, options)


@dataclass(frozen=True, eq=False)
class Ends:
    """The sets {x: a step leads from x to c} that have enough members: {x: p(x, c)} and {y: p(c, y)}.

    Each is an end: a `step` and a `constant`; `members` (ends, constants) is 1 if x is in it. No c is in its own set.
    """

    graph: StepGraph
    step: Int64[np.ndarray, " ends"]
    constant: Int64[np.ndarray, " ends"]
    members: csr_array

    @classmethod
    def from_graph(cls, graph: StepGraph, least: int) -> "Ends":
        """The ends with at least so many members."""
        x, step, c = graph.edges
        keys, end, sizes = np.unique(step * graph.constants + c, return_inverse=True, return_counts=True)
        kept = sizes >= least
        entries, number = kept[end], np.cumsum(kept) - 1
        members = _ones(number[end[entries]], x[entries], (int(kept.sum()), graph.constants))
        return cls(graph, *np.divmod(keys[kept], graph.constants), members)

    def __len__(self) -> int:
        return len(self.step)

    def find(self, step: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """The number of each end, -1 if it has too few members."""
        size = self.graph.constants
        return index_among(step * size + constant, self.step * size + self.constant)

    @cached_property
    def is_concluded(self) -> Bool[np.ndarray, " ends"]:
        """Whether rules may conclude it as a head."""
        return self.graph.concluded[self.step // 2]

    @cached_property
    def inside(self) -> Bool[np.ndarray, "domains constants"]:
        """Which constants are in each domain of `graph.inside`, in its order."""
        return np.array(list(self.graph.inside.values()))

    @cached_property
    def domain(self) -> Int64[np.ndarray, " ends"]:
        """The domain of its x in an atom, by its index in `graph.inside`."""
        number = {domain: i for i, domain in enumerate(self.graph.inside)}
        of_step = [number[domain] for predicate in self.graph.predicates for domain in predicate.domains]
        return np.array(of_step, np.int64)[self.step]

    def found(self, options: MiningOptions, head: np.ndarray, body: np.ndarray, *counts: np.ndarray) -> Found:
        """The rules with enough confidence, of heads (ends) and bodies (a step, and a constant or -1).

        The counts are support, body pairs, and the pairs among them whose x has a known fact of the head's predicate;
        the x of a pair of p(c, y) is c, which has one.
        """
        support, body_pairs, known_pairs = counts
        pca_pairs = np.where(self.step[head] % 2 == 0, known_pairs, body_pairs)
        rows = np.flatnonzero(support >= options.min_confidence * body_pairs)
        heads = np.stack([self.step, self.constant], axis=1)[head[rows]]
        return Found(heads, body[rows], support[rows], body_pairs[rows], pca_pairs[rows])

    def with_constant_bodies(self, start: int, stop: int, options: MiningOptions) -> Found:
        """Rules p(x, c) <- q(x, d), ends that share members, whose bodies are the ends from `start` to `stop`."""
        graph = self.graph
        shared = csr_array(self.members[start:stop] @ self.members.T).tocoo()
        body, head = shared.coords[0].astype(np.int64) + start, shared.coords[1].astype(np.int64)
        kept = (shared.data >= options.min_support) & (body != head) & self.is_concluded[head]
        body, head, support = body[kept], head[kept], shared.data[kept]
        predicate, constant, domain = self.step[head] // 2, self.constant[head], self.domain[head]
        itself = entries_at(self.members, body, constant) > 0  # x = c is no substitution
        body_pairs = self._inside[domain, body] - (itself & self.inside[domain, constant])
        known = csr_array(self.members[start:stop] @ graph.known_first.T).toarray()[body - start, predicate]
        known -= itself & (entries_at(graph.known_first, predicate, constant) > 0)
        columns = np.stack([self.step[body], self.constant[body]], axis=1)
        return self.found(options, head, columns, support, body_pairs, known)

    def with_longer_bodies(self, first: int, start: int, stop: int, options: MiningOptions) -> Found:
        """Rules p(x, c) <- r(x, z), q(z, d) by a first step r and the ends q(., d) from `start` to `stop`.

        Which x have a z other than c is looked up for each body and head: z may be c alone.
        """
        leads, tails = self.graph.steps[first], self.members[start:stop]
        walks = csr_array(tails @ leads.T)
        walks.data[walks.indices == self.constant[start:stop][row_of_entries(walks)]] = 0  # x = d is no substitution
        walks.eliminate_zeros()
        bodies = walks.copy()
        bodies.data[:] = 1
        shared = csr_array(bodies @ self.members.T).tocoo()
        body, head = (column.astype(np.int64) for column in shared.coords)
        kept = (shared.data >= options.min_support) & self.is_concluded[head]
        body, head = body[kept], head[kept]
        counts, inside = np.zeros((3, len(head)), np.int64), csr_array(self.inside.astype(np.int64))
        parts = 1 + int(np.diff(walks.indptr)[body].sum()) // MOST_MEETINGS
        for rows in np.array_split(np.arange(len(head)), parts):
            b, h = body[rows], head[rows]
            c, reached = self.constant[h], csr_array(walks[b])
            by_c = csr_array(leads.T)[c].multiply(tails[b, c][:, None])  # those whose z may be c
            reached = csr_array(reached - by_c)
            reached.data = ((reached.data > 0) & (reached.indices != c[row_of_entries(reached)])).astype(np.int64)
            groups = self.members[h], inside[self.domain[h]], self.graph.known_first[self.step[h] // 2]
            counts[:, rows] = [np.asarray(reached.multiply(group).sum(axis=1)) for group in groups]
        support, body_pairs, known_pairs = counts
        kept = np.flatnonzero(support >= options.min_support)
        steps = np.stack([np.full_like(body, first), self.step[start + body], self.constant[start + body]], axis=1)
        return self.found(options, head[kept], steps[kept], support[kept], body_pairs[kept], known_pairs[kept])

    def with_variable_bodies(self, start: int, stop: int, options: MiningOptions) -> Found:
        """Rules p(x, c) <- q(x, z) whose heads are the ends from `start` to `stop`: z is neither x nor c."""
        graph = self.graph
        having = csr_array(self.members[start:stop] @ self._has_step.T - self._single_members[start:stop]).tocoo()
        head, body = having.coords[0].astype(np.int64) + start, having.coords[1].astype(np.int64)
        kept = (having.data >= options.min_support) & self.is_concluded[head]
        head, body, support = head[kept], body[kept], having.data[kept]
        predicate, constant, domain = self.step[head] // 2, self.constant[head], self.domain[head]
        itself = entries_at(graph.leaving, body, constant) > 0  # x = c is no substitution
        inside, single_inside, known, single_known = self._totals
        target = body * graph.constants + constant
        body_pairs = inside[domain, body] - entries_at(single_inside, domain, target)
        body_pairs -= itself & self.inside[domain, constant]
        known_pairs = known[predicate, body] - entries_at(single_known, predicate, target)
        known_pairs -= itself & (entries_at(graph.known_first, predicate, constant) > 0)
        columns = np.stack([body, np.full_like(body, -1)], axis=1)
        return self.found(options, head, columns, support, body_pairs, known_pairs)

    @cached_property
    def _inside(self) -> Int64[np.ndarray, "domains ends"]:
        """How many members of each end are in each domain."""
        return (self.members @ self.inside.T).T

    @cached_property
    def _has_step(self) -> csr_array:
        """1 if a step leaves a constant: (steps, constants)."""
        leaving = self.graph.leaving.copy()
        leaving.data[:] = 1
        return leaving

    @cached_property
    def _single(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The steps from x to c that are the only one of their kind from x, as columns x, step, c."""
        x, step, c = self.graph.edges
        single = entries_at(self.graph.leaving, step, x) == 1
        return x[single], step[single], c[single]

    @cached_property
    def _single_members(self) -> csr_array:
        """How many members of an end have a single step to its own constant: (ends, steps)."""
        graph, (x, step, c) = self.graph, self._single
        columns = []
        for direction, (first, second) in enumerate(((x, c), (c, x))):
            which, predicate = graph.facts_between(first, second)
            end = self.find(2 * predicate + direction, c[which])
            columns.append(np.stack([end, step[which]])[:, end >= 0])
        end, body = np.concatenate(columns, axis=1)
        return csr_array((np.ones(len(end), np.int64), (end, body)), shape=(len(self), len(graph.steps)))

    @cached_property
    def _totals(self) -> tuple[np.ndarray, csr_array, np.ndarray, csr_array]:
        """How many x of each domain have each step, and how many only to c; the same for x with a known head."""
        graph, (x, step, c) = self.graph, self._single
        shape, totals = (graph.constants, len(graph.steps) * graph.constants), []
        steps_to = csr_array((np.ones(len(x), np.int64), (x, step * graph.constants + c)), shape=shape)
        for groups in (csr_array(self.inside.astype(np.int64)), graph.known_first):
            single = csr_array(groups @ steps_to)
            single.sort_indices()  # entries are found by bisection
            totals += [csr_array(groups @ self._has_step.T).toarray(), single]
        return totals[0], totals[1], totals[2], totals[3]


def search_constant_rules(ends: Ends, options: MiningOptions) -> Iterator[Part]:
    """The rules with a constant in the head; a part of the search is a part of the ends."""
    if not len(ends):
        return
    meetings = np.cumsum(ends.members @ ends.members.sum(axis=0))
    bounds = np.searchsorted(meetings, np.arange(0, meetings[-1], MOST_MEETINGS))
    bounds = np.unique(np.append(bounds, len(ends))).tolist()
    for part, (start, stop) in enumerate(pairwise(bounds)):
        yield part, len(bounds) - 1, None
        for search in (ends.with_constant_bodies, ends.with_variable_bodies):
            yield part, len(bounds) - 1, search(start, stop, options)


def search_longer_constant_rules(ends: Ends, options: MiningOptions) -> Iterator[Part]:
    """The rules with a constant in the head and at the end of two body atoms; a part is a first step and some ends."""
    graph = ends.graph
    total = len(graph.steps) if len(ends) else 0
    in_heads = ends.members.sum(axis=0)
    for first in range(total):
        meetings = np.cumsum(ends.members @ (graph.steps[first].T @ in_heads))
        bounds = np.searchsorted(meetings, np.arange(0, meetings[-1], MOST_MEETINGS))
        for start, stop in pairwise(np.unique(np.append(bounds, len(ends))).tolist()):
            yield first, total, None
            yield first, total, ends.with_longer_bodies(first, start, stop, options)
