"""The steps of backward chaining, one by one."""

import numpy as np

import r2n
from r2n.grounding.backward import Search, rule_query
from r2n.progress import no_progress
from tests.unit.grounding.small_knowledge import codes, knowledge

CHAIN = "rule r: smokes(x) & knows(x, y) -> smokes(y)\n"
KB = knowledge(CHAIN, "knows(ann,bob) knows(bob,cy) knows(cy,ann)")


def searched(widths: list[int], leading: int = 1, prune: bool = False) -> Search:
    search = Search(r2n.Store(KB), 100, prune=prune)
    search.run(codes(KB, "smokes(cy)"), widths, leading, no_progress)
    return search


def test_each_step_goes_one_ground_rule_further_and_asks_nothing_twice() -> None:
    for depth in (1, 2, 3, 4, 5):
        (part,) = searched([1] * depth).found
        assert len(part.atoms) == min(depth, 3)
        assert sum(len(found) for _, found in part.admitted) == min(depth, 3), "by one anchor, since no smoker is known"
        assert part.unknown.tolist() == [1] * min(depth, 3)


def test_only_ground_rules_of_few_unknowns_lead_on() -> None:
    assert len(searched([1, 1, 1], leading=0).found[0].atoms) == 1


def test_what_is_known_is_no_unknown_body() -> None:
    (part,) = searched([1]).found
    (smokes, knows) = part.unknown_bodies
    assert KB.base.names(smokes) == ["smokes(bob)"]
    assert knows.tolist() == [-1]


def test_progress_counts_rules_and_steps() -> None:
    told: list[tuple[str, int, int]] = []
    Search(r2n.Store(KB), 100, prune=True).run(codes(KB, "smokes(cy)"), [1, 0], 1, lambda *given: told.append(given))
    assert told == [("ground", 0, 2), ("ground", 1, 2)]


def test_the_query_demands_counts_and_keeps_apart() -> None:
    kb = knowledge("rule r: smokes(x) & takes(x, z) & knows(x, y) & !smokes(z: person) -> smokes(y)\n", theory=OPEN)
    (rule,) = kb.theory.rules
    store = r2n.Store(kb)
    asked = store.asked(np.arange(kb.base.size))["smokes"]
    wide = rule_query(Search(store, 100, prune=True), rule, 4, asked, 0, 2)
    assert [str(atom) for _, atom in wide.joined] == ["smokes(y)", "smokes(x)", "knows(x, y)"]
    assert [str(atom) for _, atom in wide.counted] == ["takes(x, z)", "smokes(z)"]
    narrow = rule_query(Search(store, 100, prune=True), rule, 4, asked, 1, 1)
    assert [str(atom) for _, atom in narrow.counted] == ["smokes(x)"], "nothing proves the others"
    assert [(str(some), str(other)) for some, other in narrow.apart] == [("smokes(x)", "smokes(y)")]


OPEN = """\
domain person = {ann, bob}
predicate smokes(person)
predicate knows(person, person) closed
predicate takes(person, person)
"""


def test_a_search_ends_when_nothing_new_is_met() -> None:
    told: list[int] = []
    for depth, steps in ((2, 2), (10, 3), (1_000_000, 3)):
        search = Search(r2n.Store(KB), 100, prune=False)
        told.clear()
        search.run(codes(KB, "smokes(cy)"), [1] * depth, 1, lambda _, done, __: told.append(done))
        assert len(told) == steps
    knowledge_base = r2n.BackwardGrounder(1, 1_000_000).neighbourhoods(r2n.Store(KB), codes(KB, "smokes(cy)"))
    assert len(knowledge_base.grounding) == 0, "nothing is proved"
    deep = r2n.BackwardGrounder(1, 1_000_000, prune=False).neighbourhoods(r2n.Store(KB), codes(KB, "smokes(cy)"))
    assert len(deep.grounding) == 3


def test_the_query_may_stand_at_the_anchor_of_a_body_and_nowhere_else() -> None:
    """docs/grounding.md, and the golden counts of BC: only body positions other than the anchor exclude the query."""
    kb = knowledge(CHAIN, "knows(ann,ann) knows(bob,ann)")
    wide = r2n.BackwardGrounder(2, 1, 2, prune=False)
    found = wide.ground(r2n.Store(kb), codes(kb, "smokes(ann)"))
    bodies = {kb.base.names(row)[0] for part in found.ground_rules for row in part.atoms}
    assert "smokes(bob)" in bodies
    assert "smokes(ann)" not in bodies, "the anchor there is knows(ann, ann)"
    alone = knowledge("rule r: smokes(x) -> smokes(x)\n", "")
    assert len(wide.ground(r2n.Store(alone), codes(alone, "smokes(ann)"))) == 1, "the query is the anchor itself"
