"""Rules -> ground rules: what cannot work, told before a training: what its rules reach, and what there is to learn.

Nothing here is refused: a network learns from its input layer too. And nothing here takes long: where the facts and
rules are many, rules are looked at, not grounded.
"""

from collections.abc import Iterator
from math import prod

import numpy as np

from r2n.errors import GroundingError, counted
from r2n.grounding.full import uncontradicted_query
from r2n.grounding.known_body import known_body_query
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

MOST_WORK = 2_000_000  # facts times rules: above, nothing is grounded to find out
MOST_GROUNDINGS = 200_000  # of a rule, to find out
MOST_TRIED = 200  # queries of a split that are grounded around
MOST_NAMED = 3  # rules that a sentence names


def doubts(problem: Problem, options: Options) -> list[str]:
    """What a person should know of a problem and its options before they train, a sentence each."""
    found = [*_unlearned(problem, options), *_asked_closed(problem)]
    if options.model.has_layers and options.model.rules == "layers" and problem.knowledge.theory.rules:
        store = Store(as_trained(problem.knowledge, options.grounding))
        found += [*_over_budget(store, options.grounding), *_asked_in_bodies(problem, options)]
        found += _unreached(problem, store, options.grounding)
    return found


def _asked_predicates(problem: Problem) -> list[str]:
    """Names of the predicates that queries ask for."""
    base = problem.knowledge.base
    asked = [base.decode(part.atoms)[0] for part in problem.queries.values()]
    indices = np.unique(np.concatenate([np.zeros(0, np.int64), *asked]))
    return [base.language.predicates[i].name for i in indices]


def _open_atoms(base: HerbrandBase, evidence: Evidence) -> Codes:
    return evidence.atoms[~closed_atoms(base, evidence.atoms)]


def _unlearned(problem: Problem, options: Options) -> Iterator[str]:
    """Asked predicates of which nothing open is known; those that are all closed are told of elsewhere."""
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


def _over_budget(store: Store, options: GroundingOptions) -> Iterator[str]:
    """Rules that are refused by their estimate alone."""
    if options.strategy == "backward":
        return
    for rule in store.knowledge.theory.rules:
        is_known_body = options.strategy == "known-body" and rule.body
        query = known_body_query(store, rule) if is_known_body else uncontradicted_query(store, rule)
        pairs = zip(rule.variables, store.domains(rule), strict=True)
        size = prod(len(domain) for name, domain in pairs if name not in query.variables)
        size *= 1 if query.is_free else query.estimate()
        if size > options.max_groundings * (1 if query.is_free else SURELY_TOO_MANY):
            yield f"grounding is refused: {budget_error(rule, size, options.max_groundings, exact=query.is_free)}"


def _asked_in_bodies(problem: Problem, options: Options) -> Iterator[str]:
    is_left_out = options.training.batch_size is not None and options.training.leave_one_out is not False
    if options.grounding.strategy != "known-body" or is_left_out:
        return
    asked, rules = set(_asked_predicates(problem)), problem.knowledge.theory.rules
    found = {
        rule.name: [
            name for name in dict.fromkeys(rule.atoms[part.position].predicate for part in rule.body) if name in asked
        ]
        for rule in rules
    }
    held = [f"{name}: {', '.join(predicates)}" for name, predicates in found.items() if predicates]
    if held:
        named = "; ".join([*held[:MOST_NAMED], *["..."] * (len(held) > MOST_NAMED)])
        yield (
            f"{len(held):,} of {counted(len(rules), 'rule')} {'has' if len(held) == 1 else 'have'} a predicate that is"
            f" asked in {'its' if len(held) == 1 else 'their'} body ({named}): under known-body grounding only facts"
            " stand there, in training also those that are asked, so that a training may learn from them what no test"
            " query has; set training.batch_size, which leaves out what a step asks, or model.rules = 'counted'"
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
    if options.strategy == "full" or len(knowledge.evidence) * len(knowledge.theory.rules) > MOST_WORK:
        return None
    budget = min(MOST_GROUNDINGS, options.max_groundings)
    try:
        grounding = make_grounder(options.model_copy(update={"max_groundings": budget})).ground(store, asked)
    except GroundingError:
        return None
    return bool(reached_atoms(grounding, asked).any())


def _is_spoken_of(knowledge: KnowledgeBase, asked: Codes) -> bool:
    """Whether any rule holds a predicate of the atoms."""
    names = {atom.predicate for rule in knowledge.theory.rules for atom in rule.atoms}
    predicates = knowledge.language.predicates
    return any(predicates[i].name in names for i in np.unique(knowledge.base.decode(asked)[0]))
