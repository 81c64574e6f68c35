"""Backward chaining: proofs of bounded width and depth, found from the queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from jaxtyping import Bool, Int64

from r2n.data.herbrand import Codes
from r2n.errors import GroundingError
from r2n.grounding.ground_rules import Adjacency, Grounding, GroundRules, Neighbourhoods, codes_without, distinct_codes
from r2n.grounding.joins import (
    MAX_GROUNDINGS,
    Relation,
    RuleQuery,
    Substitutions,
    are_candidates,
    check_budget,
    encode_substitutions,
    rows_among,
    sorted_substitutions,
)
from r2n.grounding.store import Store
from r2n.logic.formula import Variable
from r2n.logic.theory import Rule
from r2n.progress import Progress, no_progress

Known = Bool[np.ndarray, "_ _"]
"""Whether each body literal of a rule's ground rules is known; (ground rules, literals)."""


def known_literals(store: Store, rule: Rule, atoms: Int64[np.ndarray, "ground_rules positions"]) -> Known:
    """Whether each body literal is known, in ground rules given by the codes of their atoms."""
    known = np.zeros((len(atoms), len(rule.body)), bool)
    for i, literal in enumerate(rule.body):
        (relation, _), is_in = store.known_by(rule, literal)
        known[:, i] = np.isin(atoms[:, literal.position], relation.codes) == is_in
    return known


def proved(
    rules: Sequence[Rule], atoms: Sequence[np.ndarray], known: Sequence[Known], rounds: int
) -> list[Bool[np.ndarray, " _"]]:
    """Which ground rules have only body literals that are known, or proved within `rounds`; one array a rule.

    `atoms` numbers the atoms of each ground rule. An atom is proved in a round if a ground rule concludes it whose
    unknown body atoms were all proved before; a negative literal that is not known is never proved.
    """
    distinct = distinct_codes(atoms)
    rows, proved = [np.searchsorted(distinct, part) for part in atoms], np.zeros(len(distinct), bool)

    def holding() -> list[np.ndarray]:
        found = []
        for rule, part, known_part in zip(rules, rows, known, strict=True):
            holds = np.ones(len(part), bool)
            for i, literal in enumerate(rule.body):
                holds &= known_part[:, i] | (proved[part[:, literal.position]] & literal.positive)
            found.append(holds)
        return found

    for _ in range(rounds):
        before = int(proved.sum())
        for rule, part, holds in zip(rules, rows, holding(), strict=True):
            proved[part[holds][:, list(rule.head_positions)].ravel()] = True
        if int(proved.sum()) == before:
            break  # later rounds prove nothing more
    return holding()


@dataclass(frozen=True)
class Searched:
    """The part of a search for one rule; `admitted`: the substitutions that a query at each head position led to."""

    rule: Rule
    substitutions: Substitutions
    atoms: np.ndarray
    known: Known
    admitted: tuple[tuple[int, Substitutions], ...] = ()
    seconds: float = 0.0

    @property
    def unknown(self) -> np.ndarray:
        """How many body literals of each ground rule are unknown."""
        return np.count_nonzero(~self.known, axis=1)

    @property
    def unknown_bodies(self) -> list[np.ndarray]:
        """For each positive body literal, the codes of its atom in ground rules, -1 if it is known."""
        return [
            np.where(self.known[:, i], -1, self.atoms[:, literal.position])
            for i, literal in enumerate(self.rule.body)
            if literal.positive
        ]


class Search:
    """Backward chaining over a store; what is not proved will be left out in the end."""

    def __init__(self, store: Store, max_groundings: int) -> None:
        """An empty search."""
        self.store, self.max_groundings = store, max_groundings
        rules = store.knowledge.theory.rules
        self.found: list[Searched] = []
        for rule in rules:
            substitutions, atoms = (np.zeros((0, len(of)), np.int64) for of in (rule.variables, rule.atoms))
            self.found.append(Searched(rule, substitutions, atoms, np.zeros((0, len(rule.body)), bool)))
        self.provable = {rule.atoms[i].predicate for rule in rules for i in rule.head_positions}

    def run(self, queries: Codes, widths: list[int], progress: Progress) -> None:
        """Search the queries (distinct), then step by step the unknown body atoms found, each once; a width a step."""
        asking, asked, knowledge = queries, queries, self.store.knowledge
        for step, width in enumerate(widths):
            if step and not len(asking):
                break  # nothing new was found: whatever the depth, there is nothing more to find
            relations = self.store.asked(asking)
            for number, part in enumerate(self.found):
                progress("ground", step * len(self.found) + number, len(widths) * len(self.found))
                start, rule = perf_counter(), part.rule
                rule_queries = [] if self.store.is_left_out(rule) else self.queries(rule, relations, width)
                if not rule_queries:
                    continue
                admitted = list[tuple[int, Substitutions]]()
                for head, query in rule_queries:
                    found = self.store.substitutions(query, self.max_groundings)
                    if knowledge.candidates:
                        atoms = encode_substitutions(knowledge.base, rule, found)
                        found = found[are_candidates(knowledge, rule, atoms)]
                    admitted.append((head, found))
                everything = np.concatenate([part.substitutions, *(found for _, found in admitted)])
                found = sorted_substitutions(everything, len(self.store.language.constants), distinct=True)
                atoms = encode_substitutions(knowledge.base, rule, found)
                check_budget(rule, len(atoms), self.max_groundings, exact=True)
                known, seconds = known_literals(self.store, rule, atoms), part.seconds + perf_counter() - start
                self.found[number] = Searched(rule, found, atoms, known, (*part.admitted, *admitted), seconds)
            unknown = [bodies for part in self.found for bodies in part.unknown_bodies]
            asking = codes_without(distinct_codes([np.full(1, -1), *unknown])[1:], asked)
            asked = np.concatenate([asked, asking])

    def queries(self, rule: Rule, asked: dict[str, Relation], width: int) -> list[tuple[int, RuleQuery]]:
        """The queries of a rule, for each head position that is asked and each anchor: a positive body position."""
        anchors = [literal.position for literal in rule.body if literal.positive] or [None]
        return [
            (head, rule_query(self, rule, head, asked[rule.atoms[head].predicate], anchor, width))
            for head in rule.head_positions
            if rule.atoms[head].predicate in asked
            for anchor in anchors
        ]


def rule_query(search: Search, rule: Rule, head: int, asked: Relation, anchor: int | None, width: int) -> RuleQuery:
    """The ground rules with an asked head atom, an anchor bound by it or a fact, and at most `width` unknowns.

    No positive body atom but the anchor is the head atom. With a width of one, an unknown literal that nothing proves
    would be pruned: it is joined at once. In a wider ground rule, others are still searched.
    """
    store, query = search.store, rule.atoms[head]
    joined, absent, counted, apart = [(asked, query)], [], [], []
    for literal in rule.body:
        atom, is_anchor = rule.atoms[literal.position], literal.positive and literal.position == anchor
        match, is_in = store.known_by(rule, literal)
        is_bound = all(term in query.terms for term in atom.terms if isinstance(term, Variable))
        is_provable = literal.positive and atom.predicate in search.provable
        closed = store.knowledge.theory.is_closed(rule, literal.position)
        if not is_in:
            absent.append(match)
        elif closed or (is_anchor and not is_bound) or (width <= 1 and not is_provable):
            joined.append(match)
        else:
            counted.append(match)
        if literal.positive and not is_anchor and atom.predicate == query.predicate:
            apart.append((atom, query))
    return RuleQuery(
        rule, rule.variables, store.domains(rule), tuple(joined), tuple(absent), tuple(counted), width, tuple(apart)
    )


Pairs = Int64[np.ndarray, " _"]
"""Pairs of a query and an item, each as the query's index times the number of items, plus the item's."""


class Paths:
    """The results of a search as paths: from an atom to the ground rules that conclude it, to their unknown body atoms.

    Atoms are numbered in the order of their codes, ground rules rule after rule, those of rule j from `offsets[j]`.
    `heads` pairs atoms with the ground rules that their search leads to; `bodies` links these to unknown body atoms.
    """

    def __init__(self, found: Sequence[Searched], queries: Codes, constants: int) -> None:
        """The paths from the queries through the results of their search, over ids below `constants`."""
        self.found, self.codes = found, distinct_codes([queries, *(part.atoms for part in found)])
        self.queries = np.searchsorted(self.codes, queries)
        self.offsets = np.cumsum([0, *(len(part.atoms) for part in found)])
        self.unknown = np.concatenate([np.zeros(0, np.int64), *(part.unknown for part in found)])
        heads, bodies = [np.zeros((2, 0), np.int64)], [np.zeros((2, 0), np.int64)]
        for part, offset in zip(found, self.offsets[:-1], strict=True):
            for head, substitutions in part.admitted:
                rows = rows_among(substitutions, part.substitutions, constants)
                heads.append(np.stack([part.atoms[rows, head], rows + offset]))
            for atoms in part.unknown_bodies:
                rows = np.flatnonzero(atoms >= 0)
                bodies.append(np.stack([rows + offset, atoms[rows]]))
        ground_rules, met = np.concatenate(bodies, axis=1)
        asked, led_to = np.concatenate(heads, axis=1)
        size = self._sizes[1]
        once = distinct_codes([np.searchsorted(self.codes, asked) * size + led_to])  # several positions may be one atom
        self.heads = np.stack(np.divmod(once, size)).T
        self.bodies = Adjacency.build(ground_rules, np.searchsorted(self.codes, met), int(self.offsets[-1]))

    @property
    def _sizes(self) -> tuple[int, int]:
        """The numbers of atoms and ground rules, at least one of each: pairs are divided by these."""
        return max(1, len(self.codes)), max(1, int(self.offsets[-1]))

    def followed(self, widths: Sequence[int], max_groundings: int) -> Pairs:
        """Pairs of a query and a ground rule that its own search finds, ascending; one width per step."""
        atoms, ground_rules = self._sizes
        asking = asked = np.arange(len(self.queries)) * atoms + self.queries
        found, counts = np.zeros(0, np.int64), np.zeros(len(self.found))
        for step, width in enumerate(widths):
            if step and not len(asking):
                break
            queries, at = np.divmod(asking, atoms)
            admitted = self.heads[self.unknown[self.heads[:, 1]] <= width]
            times = np.bincount(at, minlength=len(self.codes))[admitted[:, 0]]
            counts = counts + np.bincount(self._rules(admitted[:, 1]), times, minlength=len(self.found))
            if counts.size:  # checked before the pairs are made
                most = int(counts.argmax())
                check_budget(self.found[most].rule, int(counts[most]), max_groundings, exact=False)
            owner, led_to = Adjacency.build(admitted[:, 0], admitted[:, 1], atoms).follow(at)
            new = distinct_codes([queries[owner] * ground_rules + led_to])
            found = distinct_codes([found, new])
            queries, through = np.divmod(new, ground_rules)
            owner, met = self.bodies.follow(through)
            asking = codes_without(distinct_codes([queries[owner] * atoms + met]), asked)
            asked = np.concatenate([asked, asking])
        return found

    def _rules(self, ground_rules: np.ndarray) -> np.ndarray:
        """The index of each ground rule's rule."""
        return np.searchsorted(self.offsets, ground_rules, side="right") - 1

    def neighbourhoods(self, pairs: Pairs, rounds: int) -> Neighbourhoods:
        """Of these pairs of a query and a ground rule, those that the query's own prove in `rounds`."""
        queries, ground_rules = np.divmod(pairs, self._sizes[1])
        rules = self._rules(ground_rules)
        order = np.argsort(rules, kind="stable")
        split = np.split(order, np.cumsum(np.bincount(rules, minlength=len(self.found)))[:-1])
        members = [
            (queries[own], ground_rules[own] - offset) for own, offset in zip(split, self.offsets[:-1], strict=False)
        ]
        pairs_of_rules = list(zip(self.found, members, strict=True))
        own = [  # to each query an atom is its own, so that no query proves what another asks
            queries[:, None] * self._sizes[0] + np.searchsorted(self.codes, part.atoms)[rows]
            for part, (queries, rows) in pairs_of_rules
        ]
        known = [part.known[rows] for part, (_, rows) in pairs_of_rules]
        kept = proved([part.rule for part in self.found], own, known, rounds)
        kept_rules, kept_pairs = [], []
        for (part, (queries, rows)), keep in zip(pairs_of_rules, kept, strict=True):
            used = distinct_codes([rows[keep]])  # each ground rule that some query keeps, once
            kept_rules.append(GroundRules(part.rule, part.atoms[used], part.seconds))
            kept_pairs.append(np.stack([queries[keep], np.searchsorted(used, rows[keep])]).T)
        return Neighbourhoods(Grounding(tuple(kept_rules)), tuple(kept_pairs))


QUERIES_AT_ONCE = 2**18
FEW_QUERIES = 2**10


@dataclass(frozen=True)
class BackwardGrounder:
    """Backward chaining from the queries, step by step; what others prove within `depth` rounds is kept."""

    name = "backward"
    reads_evidence = True  # known atoms are where the search ends
    starts_from_queries = True

    width: int = 1  # unknown body atoms that a ground rule may have
    depth: int = 2  # steps; in the last one, all body atoms are known
    max_groundings: int = MAX_GROUNDINGS

    def __post_init__(self) -> None:
        if self.width < 0 or self.depth < 1:
            what = f"backward grounding of width {self.width} and depth {self.depth}"
            raise GroundingError(what, hint="the width is 0 or more, the depth is 1 or more")

    @property
    def widths(self) -> list[int]:
        """How many unknown body literals a ground rule may have, step by step."""
        return [self.width] * (self.depth - 1) + [0]

    def ground(self, store: Store, queries: Codes | None = None, progress: Progress = no_progress) -> Grounding:
        """The grounding around all queries together; around one query it may be smaller (see `neighbourhoods`)."""
        if queries is None:
            raise GroundingError("backward grounding starts from queries, and there are none", hint="give queries")
        found = self._searched(store, queries, progress)
        rules, atoms, known = ([getattr(part, name) for part in found] for name in ("rule", "atoms", "known"))
        kept = proved(rules, atoms, known, self.depth)
        pairs = zip(found, kept, strict=True)
        return Grounding(tuple(GroundRules(part.rule, part.atoms[keep], part.seconds) for part, keep in pairs))

    def _searched(self, store: Store, queries: Codes, progress: Progress) -> list[Searched]:
        """The search of all queries, before pruning."""
        search = Search(store, self.max_groundings)
        search.run(np.unique(np.asarray(queries, np.int64)), self.widths, progress)
        return search.found

    def rules_met(self, store: Store, queries: Codes) -> Bool[np.ndarray, " rules"]:
        """Which rules have ground rules before pruning: without the others, the same would be found."""
        return np.array([len(part.atoms) > 0 for part in self._searched(store, queries, no_progress)], bool)

    def neighbourhoods(self, store: Store, queries: Codes, progress: Progress = no_progress) -> Neighbourhoods:
        """For each of the queries (sorted, distinct) the ground rules that `ground` finds around it alone."""
        paths = Paths(self._searched(store, queries, progress), queries, len(store.language.constants))
        return paths.neighbourhoods(paths.followed(self.widths, self.max_groundings), self.depth)

    def may_reach(self, store: Store, queries: Codes) -> Bool[np.ndarray, " queries"]:
        """Which queries the first step concludes before pruning; of few with too many ground rules, all may be."""
        distinct = np.unique(np.asarray(queries, np.int64))
        parts = np.array_split(distinct, -(-len(distinct) // QUERIES_AT_ONCE)) if len(distinct) else []
        return np.isin(queries, distinct_codes([self._concluded(store, part) for part in parts]))

    def _concluded(self, store: Store, queries: Codes) -> Codes:
        """Queries (distinct), and maybe other atoms, that the first step concludes."""
        search = Search(store, self.max_groundings)
        try:
            search.run(queries, self.widths[:1], no_progress)
        except GroundingError:
            if len(queries) <= FEW_QUERIES:
                return queries
            return distinct_codes([self._concluded(store, half) for half in np.array_split(queries, 2)])
        return distinct_codes([part.atoms[:, list(part.rule.head_positions)] for part in search.found])
