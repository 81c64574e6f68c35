"""Mined rules and constraints, by looking at every substitution of every rule."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise, permutations, product

from r2n.data.knowledge_base import KnowledgeBase

Facts = Mapping[str, set[tuple[str, str]]]
Counts = tuple[int, int, int]
NODES = {1: "xy", 2: "xzy", 3: "xzwy"}


@lru_cache(2)
def facts_of(knowledge: KnowledgeBase) -> dict[str, set[tuple[str, str]]]:
    names = knowledge.language.constants
    return {
        p.name: {(names[x], names[y]) for x, y in knowledge.facts(p).tolist()}
        for p in knowledge.language.predicates
        if p.arity == 2
    }


@lru_cache(2)
def domains_of(knowledge: KnowledgeBase) -> dict[str, list[set[str]]]:
    """The constants of each position of the binary predicates."""
    language = knowledge.language
    return {
        p.name: [{language.constants[i] for i in language.members(d)} for d in p.domains]
        for p in language.predicates
        if p.arity == 2
    }


def literals(predicate: str, start: str, end: str) -> list[tuple[str, bool]]:
    """An atom in both directions: as text, and whether it is turned round."""
    return [(f"{predicate}({start}, {end})", False), (f"{predicate}({end}, {start})", True)]


def counts_of(knowledge: KnowledgeBase, head: str, pairs: set[tuple[str, str]]) -> Counts:
    """Support, body pairs and PCA pairs of a head p(x, y) whose body reaches these pairs."""
    facts, (first, second) = facts_of(knowledge)[head], domains_of(knowledge)[head]
    pairs = {(x, y) for x, y in pairs if x in first and y in second}
    known = {x for x, _ in facts}
    return len(pairs & facts), len(pairs), sum(x in known for x, _ in pairs)


def path_rules(knowledge: KnowledgeBase, length: int) -> dict[str, Counts]:
    """The counts of every rule with a body of so many atoms, by its formula; rules without support are left out."""
    facts, nodes = facts_of(knowledge), NODES[length]
    found = {}
    ends = list(pairwise(nodes))
    for body in product(*([atom for p in facts for atom in literals(p, *pair)] for pair in ends)):
        reached = set()
        for places in permutations(knowledge.language.constants, length + 1):
            walk = zip(body, places, places[1:], strict=False)
            if all(((b, a) if turned else (a, b)) in facts[text.split("(")[0]] for (text, turned), a, b in walk):
                reached.add((places[0], places[-1]))
        for head in facts:
            if [text for text, _ in body] != [f"{head}(x, y)"]:
                counts = counts_of(knowledge, head, reached)
                if counts[0]:
                    found[f"{' & '.join(text for text, _ in body)} -> {head}(x, y)"] = counts
    return found


def constant_rules(knowledge: KnowledgeBase, length: int = 1) -> dict[str, Counts]:
    """The counts of every rule with a constant in its head, by its formula; rules without support are left out."""
    found = {}
    names = knowledge.language.constants
    bodies = {1: one_variable_bodies, 2: two_step_bodies}[length]
    for head, c in product(facts_of(knowledge), names):
        for free, heading in (("x", f'{head}(x, "{c}")'), ("y", f'{head}("{c}", y)')):
            if not any(c in pair for pair in facts_of(knowledge)[head]):
                continue
            for text, members in bodies(knowledge, free, c):
                pairs = {(v, c) if free == "x" else (c, v) for v in members}
                counts = counts_of(knowledge, head, pairs)
                if counts[0] and text != heading:
                    found[f"{text} -> {heading}"] = counts
    return found


def one_variable_bodies(knowledge: KnowledgeBase, free: str, c: str) -> Iterator[tuple[str, set[str]]]:
    """Bodies q(x, d), q(d, x), q(x, z), q(z, x) of a head with constant c, with the constants that x can be."""
    names = knowledge.language.constants
    for q, turned, step in directed_steps(knowledge):
        for d in names:
            yield written(q, free, f'"{d}"', turned), {a for a, b in step if b == d and a not in (c, d)}
        yield written(q, free, "z", turned), {a for a, b in step if len({a, b, c}) == 3}


def two_step_bodies(knowledge: KnowledgeBase, free: str, c: str) -> Iterator[tuple[str, set[str]]]:
    """Bodies r(x, z) & q(z, d), each atom in either direction, with the constants that x can be."""
    for (r, r_turned, to_z), (q, q_turned, to_d) in product(directed_steps(knowledge), repeat=2):
        for d in knowledge.language.constants:
            text = f"{written(r, free, 'z', r_turned)} & " + written(q, "z", f'"{d}"', q_turned)
            walks = ((x, z) for (x, z), (start, end) in product(to_z, to_d) if start == z and end == d)
            yield text, {x for x, z in walks if len({x, z}) == 2 and not {x, z} & {c, d}}


def directed_steps(knowledge: KnowledgeBase) -> list[tuple[str, bool, set[tuple[str, str]]]]:
    """Each predicate in both directions: its name, whether it is turned round, and its pairs."""
    found = product(facts_of(knowledge).items(), (False, True))
    return [(q, turned, {(b, a) if turned else (a, b) for a, b in pairs}) for (q, pairs), turned in found]


def written(predicate: str, start: str, end: str, turned: bool) -> str:
    return f"{predicate}({end}, {start})" if turned else f"{predicate}({start}, {end})"


def breaks(kind: str, facts: Facts, predicates: tuple[str, ...], name: str, x: str, y: str) -> bool:
    """Whether name(x, y) would break a constraint beside the known facts other than itself."""
    other = facts[name] - {(x, y)}
    partner = next((p for p in predicates if p != name), name)
    return {
        "irreflexive": x == y,
        "asymmetric": x != y and (y, x) in other,
        "functional": any(a == x for a, _ in other),
        "inverse-functional": any(b == y for _, b in other),
        "disjoint": (x, y) in facts[partner],
    }[kind]


def constraints(knowledge: KnowledgeBase) -> set[tuple[str, tuple[str, ...], int, int]]:
    facts, domains = facts_of(knowledge), domains_of(knowledge)
    found: set[tuple[str, tuple[str, ...], int, int]] = set()
    for name, known in facts.items():
        first, second = domains[name]
        if first & second:
            found.add(("irreflexive", (name,), len(known), sum(x == y for x, y in known)))
            turned = [(y, x) for x, y in known if x != y and y in first and x in second]
            found.add(("asymmetric", (name,), len(turned), sum(pair in known for pair in turned)))
        for position, kind in enumerate(("functional", "inverse-functional")):
            values = [pair[position] for pair in known]
            found.add((kind, (name,), len(set(values)), sum(values.count(value) > 1 for value in set(values))))
    for p, q in product(facts, facts):
        room = len(domains[p][0]) * len(domains[p][1])
        if p < q and domains[p] == domains[q] and len(facts[p]) * len(facts[q]) / room >= 3:
            found.add(("disjoint", (p, q), min(len(facts[p]), len(facts[q])), len(facts[p] & facts[q])))
    return found
