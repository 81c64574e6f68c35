"""What a person should know of a problem before a training: what its rules reach, and what there is to learn.

Nothing here is refused: a network learns from its input layer too. And nothing here takes long: where the facts and
rules are many, rules are looked at, not grounded.
"""

from collections.abc import Iterator

import numpy as np

from r2n.errors import GroundingError, counted
from r2n.grounding.counting import is_counted
from r2n.grounding.estimates import MOST_WORK, expected_size
from r2n.grounding.ground_rules import Grounding
from r2n.grounding.reach import reached_atoms
from r2n.grounding.store import SURELY_TOO_MANY, Store
from r2n.grounding.strategies import make_grounder
from r2n.grounding.substitutions import budget_error
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import Evidence, KnowledgeBase
from r2n.knowledge.options import GroundingOptions, Options
from r2n.knowledge.problem import Problem
from r2n.knowledge.reciprocal import as_trained
from r2n.logic.theory import Rule
from r2n.training.negatives import assumed_false, count_negatives, draw_negatives

MOST_GROUNDINGS = 200_000  # of a rule, to find out
MOST_TRIED = 200  # queries of a split that are grounded around
MOST_STARTS = 2_000  # facts and queries that are grounded around to see which rules backward grounding meets
FEW_FACTS = 20  # of a predicate, whose corruptions are drawn to see whether there are negatives
MOST_NAMED = 3  # rules that a sentence names


def preflight_warnings(problem: Problem, options: Options) -> list[str]:
    """What a person should know of a problem and its options before they train, a sentence each."""
    found = [
        *_empty_splits(problem),
        *_trained_on_valid(problem, options),
        *_unlearned(problem, options),
        *_asked_closed(problem),
    ]
    found += [*_without_negatives(problem, options), *assumed_false(problem.knowledge, options.training)]
    if options.model.has_layers and problem.knowledge.theory.rules:
        store = Store(as_trained(problem.knowledge, options.grounding))
        found += _ungrounded(problem, store, options)
        if options.model.rules == "layers":
            found += [*_over_budget(store, options.grounding), *asked_in_bodies(problem, options)]
            found += _unreached(problem, store, options.grounding)
    return found


def _empty_splits(problem: Problem) -> Iterator[str]:
    for split, queries in problem.queries.items():
        if not len(queries):
            yield f"the split '{split}' holds no query: add rows to its table, or leave it out of [queries]"


def _trained_on_valid(problem: Problem, options: Options) -> Iterator[str]:
    if options.training.with_valid and len(problem.valid):
        count = counted(len(problem.valid), "query", "queries")
        yield f"training.with_valid: {count} of 'valid' used for training, and not reported"
    elif options.training.with_valid:
        yield "training.with_valid changes nothing: there are no queries 'valid'"


def asked_predicates(problem: Problem) -> list[str]:
    """Names of the predicates that queries ask for."""
    base = problem.knowledge.base
    asked = [base.decode(part.atoms)[0] for part in problem.queries.values()]
    indices = np.unique(np.concatenate([np.zeros(0, np.int64), *asked]))
    return [base.language.predicates[i].name for i in indices]


def _open_atoms(base: HerbrandBase, evidence: Evidence, *, true: bool = False) -> Codes:
    atoms = evidence.atoms[evidence.truth] if true else evidence.atoms
    return atoms[~closed_atoms(base, atoms)]


def _unlearned(problem: Problem, options: Options) -> Iterator[str]:
    """Asked predicates of which nothing open is known; those that are all closed have a warning of their own."""
    if options.training.ask_closed:
        return
    base = problem.knowledge.base
    known = set(base.decode(_open_atoms(base, problem.train))[0].tolist())
    asked = {i for part in problem.queries.values() for i in base.decode(_open_atoms(base, part))[0].tolist()}
    if not known and not asked and len(problem.train):
        yield (
            "no atom of an open predicate is known, so that a training has nothing to learn from: add facts of one to"
            " [facts] train, or ask r2n infer, which answers from facts and rules alone"
        )
    for i in sorted(asked - known):
        yield (
            f"{base.language.predicates[i].name} is asked, and no open atom of it is known: a training learns nothing"
            " of it but what the rules say; add facts of it to [facts] train, or ask r2n infer, which needs none"
        )


def _asked_closed(problem: Problem) -> Iterator[str]:
    base = problem.knowledge.base
    for split, queries in problem.queries.items():
        closed = queries.atoms[closed_atoms(base, queries.atoms)]
        if len(closed):
            names = ", ".join(base.language.predicates[i].name for i in np.unique(base.decode(closed)[0]))
            yield (
                f"{len(closed):,} of {counted(len(queries), 'query', 'queries')} '{split}'"
                f" {'is' if len(closed) == 1 else 'are'} closed: what is no fact of {names} is false;"
                " take 'closed' from its declaration where that is not so"
            )


def _without_negatives(problem: Problem, options: Options) -> Iterator[str]:
    """Open predicates of which a training would see true atoms alone; with reciprocals every position is corrupted."""
    base, evidence = problem.knowledge.base, problem.train
    positions = None if options.grounding.reciprocal else options.training.corrupted_positions
    some = options.training.model_copy(update={"negatives": FEW_FACTS, "corrupted_positions": positions})
    every, generator = some.model_copy(update={"negatives": None}), np.random.default_rng(0)
    facts, false = _open_atoms(base, evidence, true=True), evidence.atoms[~evidence.truth]
    for drawn in (some, every):  # first a few corruptions of a few facts; all of them where these are no negatives
        facts = facts[~np.isin(base.decode(facts)[0], base.decode(false)[0])]
        index, first, which = np.unique(base.decode(facts)[0], return_index=True, return_inverse=True)
        tried = facts if drawn is every else facts[np.arange(len(facts)) - first[which] < FEW_FACTS]
        if count_negatives(base, Evidence(tried, np.ones(len(tried), bool)), drawn) > MOST_WORK:
            return
        false = draw_negatives(base, evidence, drawn, generator, tried).codes
    for i in np.setdiff1d(index, base.decode(false)[0]):
        predicate, arity = base.language.predicates[i], base.language.predicates[i].arity
        corrupted = range(-arity, 0) if positions is None else [p for p in positions if -arity <= p < arity]
        domains = {position: predicate.domains[position] for position in corrupted}
        reason = "every corruption of its facts is a fact"
        if predicate.name in options.training.labels_only:
            reason = "training.labels_only asks its labelled atoms alone, and none is labelled false"
        elif not domains:
            reason = "training.corrupted_positions names none of its positions, and no atom of it is labelled false"
        elif all(len(base.language.members(domain)) == 1 for domain in domains.values()):
            reason = " and ".join(f"position {p} has one constant ({domain.name})" for p, domain in domains.items())
        yield (
            f"no negative of {predicate.name} can be drawn: {reason}; training would see only true atoms of it and"
            " learn that it is always true: label some of its atoms false, name the constants of its domains in"
            " [domains], or corrupt other positions (training.corrupted_positions)"
        )


def _ungrounded(problem: Problem, store: Store, options: Options) -> Iterator[str]:
    """Rules that surely have no ground rule, those with the same reason in one sentence."""
    met, named = _rules_met(problem, store, options.grounding), dict[str, list[str]]()
    for number, rule in enumerate(store.theory.rules):
        is_in_counts = options.model.rules == "counted" and is_counted(rule)
        strategy = "known-body" if is_in_counts else options.grounding.strategy
        reason = None
        if expected_size(store, rule, "full").is_zero:
            reason = f": {_missing(store, rule, 'full')}"
        elif strategy == "known-body" and expected_size(store, rule, strategy).is_zero:
            where = "where rules are counted" if is_in_counts else "under known-body grounding"
            reason = f" {where}: {_missing(store, rule, strategy)}"
        elif strategy == "backward" and not met[number]:
            heads = " and ".join(dict.fromkeys(rule.atoms[i].predicate for i in rule.head_positions))
            reason = (
                f" under backward grounding: it concludes {heads} around no fact or query, from what is known or other"
                f" rules conclude; add facts or queries of {heads}, raise grounding.width or grounding.depth, or take"
                " grounding.strategy 'full'"
            )
        if reason is not None:
            named.setdefault(reason, []).append(rule.name)
    for reason, names in named.items():
        subject = f"rule '{names[0]}' has" if len(names) == 1 else f"{len(names):,} rules ({_first(names)}) have"
        yield f"{subject} no ground rule{reason}"


def _first(names: list[str], separator: str = ", ") -> str:
    """The first of some names, with dots where there are more."""
    return separator.join([*names[:MOST_NAMED], *["..."] * (len(names) > MOST_NAMED)])


def _missing(store: Store, rule: Rule, strategy: str) -> str:
    """Why no substitution of a rule meets what the strategy asks of its body, and what to do."""
    variables = zip(rule.variables, store.domains(rule), strict=True)
    empty = [relation.domains[0].name for _, relation in variables if not len(relation)]
    if empty:
        return f"the domain {empty[0]} has no constant; name some in [domains]"
    for literal in rule.body:
        is_closed = store.theory.is_closed(rule, literal.position)
        (relation, atom), is_in = store.known_by(rule, literal)
        if not is_in or len(relation) or not (is_closed or strategy == "known-body"):
            continue
        facts = f"add facts of {atom.predicate} to [facts] train"
        if is_closed:
            closed = f"{atom.predicate} is closed, and no fact of it is known"
            return f"{closed}; {facts}, or take 'closed' from its declaration"
        known = (
            f"fact of {atom.predicate} is known"
            if literal.positive
            else f"atom of {atom.predicate} is known to be false"
        )
        return f"no {known}; {facts}, or take grounding.strategy 'full'"
    limited = next((atom.predicate for atom in rule.atoms if atom.predicate in store.knowledge.candidates), None)
    if limited is not None:
        return (
            f"no atoms that are candidates of {limited} meet in it; name those that are missing in a table of"
            f" [candidates.{limited}], p(b, a) next to p(a, b) where a rule turns them round"
        )
    hint = "see whether the arguments in its body are in the right order"
    return f"no facts meet its body; {hint}{', or take a wider strategy' if strategy == 'known-body' else ''}"


def _rules_met(problem: Problem, store: Store, options: GroundingOptions) -> list[bool]:
    """For each rule, whether backward grounding finds it around a fact or query; True where that takes long."""
    rules, atoms = store.theory.rules, problem.atoms
    if options.strategy != "backward" or len(atoms) > MOST_STARTS:
        return [True] * len(rules)
    grounding = _tried(store, atoms, options)
    return [True] * len(rules) if grounding is None else [len(part) > 0 for part in grounding.ground_rules]


def _over_budget(store: Store, options: GroundingOptions) -> Iterator[str]:
    """Rules that are refused by their estimate alone."""
    if options.strategy == "backward":
        return
    for rule in store.theory.rules:
        size = expected_size(store, rule, options.strategy)
        if size.count > options.max_groundings * (1 if size.exact else SURELY_TOO_MANY):
            error = budget_error(rule, size.count, options.max_groundings, exact=size.exact)
            yield f"grounding is refused: {error}"


def asked_in_bodies(problem: Problem, options: Options) -> Iterator[str]:
    """Rules of which a training under known-body grounding may learn from the facts that it asks."""
    is_left_out = options.training.batch_size is not None and options.training.leave_one_out is not False
    if options.grounding.strategy != "known-body" or is_left_out:
        return
    asked, rules = set(asked_predicates(problem)), problem.knowledge.theory.rules
    found = {
        rule.name: [
            name for name in dict.fromkeys(rule.atoms[part.position].predicate for part in rule.body) if name in asked
        ]
        for rule in rules
    }
    held = [f"{name}: {', '.join(predicates)}" for name, predicates in found.items() if predicates]
    if held:
        yield (
            f"{len(held):,} of {counted(len(rules), 'rule')} {'has' if len(held) == 1 else 'have'} a predicate that is"
            f" asked in {'its' if len(held) == 1 else 'their'} body ({_first(held, '; ')}): under known-body grounding"
            " only facts stand there, in training also those that are asked, so that a training may learn from them"
            " what no test query has; set training.batch_size, which leaves out what a step asks, or"
            " model.rules = 'counted'"
        )


def _unreached(problem: Problem, store: Store, options: GroundingOptions) -> Iterator[str]:
    """Splits of which no query stands in a ground rule, as far as it can be found out at once."""
    for split, queries in problem.queries.items():
        tried = (
            queries.atoms[:: max(1, len(queries) // MOST_TRIED)] if options.strategy == "backward" else queries.atoms
        )
        if len(queries) and _reaches(store, tried, options) is False:
            yield (
                f"no ground rule reaches any of the {counted(len(queries), 'query', 'queries')} '{split}'"
                f" ({options.strategy}): the rules tell nothing of them; r2n ground shows what each rule gives"
            )


def _reaches(store: Store, asked: Codes, options: GroundingOptions) -> bool | None:
    """Whether a ground rule holds any of the atoms; None where that would take long to find out."""
    knowledge = store.knowledge
    if not _is_spoken_of(knowledge, asked):
        return False
    grounding = None if options.strategy == "full" else _tried(store, asked, options)
    return None if grounding is None else bool(reached_atoms(grounding, asked).any())


def _tried(store: Store, asked: Codes, options: GroundingOptions) -> Grounding | None:
    """The grounding around some atoms; None where that would take long."""
    if len(store.knowledge.evidence) * len(store.theory.rules) > MOST_WORK:
        return None
    budget = min(MOST_GROUNDINGS, options.max_groundings)
    try:
        return make_grounder(options.model_copy(update={"max_groundings": budget})).ground(store, asked)
    except GroundingError:
        return None


def _is_spoken_of(knowledge: KnowledgeBase, asked: Codes) -> bool:
    """Whether any rule holds a predicate of the atoms."""
    names = {atom.predicate for rule in knowledge.theory.rules for atom in rule.atoms}
    predicates = knowledge.language.predicates
    return any(predicates[i].name in names for i in np.unique(knowledge.base.decode(asked)[0]))
