"""Known-body grounding by hand."""

import pytest

import r2n
from r2n.errors import GroundingError
from r2n.grounding import store
from tests.unit.grounding.small_knowledge import knowledge, named


def test_bodies_are_known_heads_need_not_be() -> None:
    kb = knowledge("rule r: smokes(x) & knows(x, y) -> smokes(y)\n", "smokes(ann) knows(ann,bob) knows(bob,cy)")
    assert named(kb, r2n.KnownBodyGrounder().ground(r2n.Store(kb))) == [["smokes(ann) knows(ann, bob) smokes(bob)"]]


def test_denied_literals_are_known_by_false_evidence_or_a_closed_world() -> None:
    rules = "rule r: !smokes(x) -> takes(x, y)\nrule s: !knows(x, x) & smokes(x) -> takes(x, y)\n"
    kb = knowledge(rules, "smokes(cy) smokes(bob) knows(bob,bob)", "smokes(ann)")
    found = named(kb, r2n.KnownBodyGrounder().ground(r2n.Store(kb)))
    assert found == [["smokes(ann) takes(ann, tea)"], ["knows(cy, cy) smokes(cy) takes(cy, tea)"]]


def test_rules_that_share_a_body_are_both_ground() -> None:
    rules = "rule r: smokes(x) & knows(x, y) -> smokes(y)\nrule s: smokes(a) & knows(a, b) -> takes(b, c)\n"
    rules += "rule t: smokes(a) & knows(a, b) -> takes(a, c)\nrule u: smokes(a) & knows(b, a) -> takes(a, c)\n"
    kb = knowledge(rules, "smokes(ann) knows(ann,bob)")
    assert [len(part) for part in r2n.KnownBodyGrounder().ground(r2n.Store(kb)).ground_rules] == [1, 1, 1, 0]
    assert named(kb, r2n.KnownBodyGrounder().ground(r2n.Store(kb)))[1][0].endswith("takes(bob, tea)")
    assert named(kb, r2n.KnownBodyGrounder().ground(r2n.Store(kb)))[2][0].endswith("takes(ann, tea)")


@pytest.mark.parametrize("guarded", [0, 1])
def test_rules_that_share_a_body_but_not_its_guards_are_ground_apart(guarded: int) -> None:
    rules = ["rule {}: smokes(x) & knows(x, y) -> smokes(y)"] * 2
    rules[guarded] += ", x != y"
    text = "".join(f"{rule.format(name)}\n" for name, rule in zip("rs", rules, strict=True))
    kb = knowledge(text, "smokes(ann) knows(ann,ann) knows(ann,bob)")
    found = named(kb, r2n.KnownBodyGrounder().ground(r2n.Store(kb)))
    assert found[guarded] == ["smokes(ann) knows(ann, bob) smokes(bob)"]
    assert found[1 - guarded] == ["smokes(ann) knows(ann, ann) smokes(ann)", *found[guarded]]


def test_a_rule_without_body_is_ground_fully() -> None:
    kb = knowledge("rule r: smokes(x) | takes(x, y)\nimplicit i: [smokes(x), smokes(y)]\n", "smokes(ann)")
    assert [len(part) for part in r2n.KnownBodyGrounder().ground(r2n.Store(kb)).ground_rules] == [3, 9]


CUBE = "rule r: smokes(x) & smokes(y) & smokes(z) -> knows(x, z)\n"


@pytest.fixture(params=[False, True], ids=["in memory", "by a database"])
def by_database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        monkeypatch.setattr(store, "MOST_ROWS", -1)
    return request.param


@pytest.mark.usefixtures("by_database")
def test_the_budget_counts_before_it_refuses() -> None:
    kb = knowledge(CUBE, "smokes(ann) smokes(bob) smokes(cy)")
    assert len(r2n.KnownBodyGrounder(27).ground(r2n.Store(kb))) == 27
    with pytest.raises(GroundingError, match="has 27 groundings, more than max_groundings = 26"):
        r2n.KnownBodyGrounder(26).ground(r2n.Store(kb))


def test_an_estimate_far_beyond_the_budget_refuses_without_counting(by_database: bool) -> None:
    kb = knowledge(CUBE, "smokes(ann) smokes(bob) smokes(cy)")
    with pytest.raises(GroundingError, match="has about 27 groundings" if by_database else "has 27 groundings"):
        r2n.KnownBodyGrounder(0).ground(r2n.Store(kb))


def test_an_estimate_that_is_too_low_is_caught_by_the_limit(by_database: bool) -> None:
    theory = "domain d = {a, b, c, e, f}\npredicate p(d, d)\npredicate q(d, d)\n"
    skewed = "p(a,a) p(b,a) p(c,a) p(e,b) p(f,c) q(a,a) q(a,b) q(a,c) q(b,e) q(c,f)"
    kb = knowledge("rule r: p(x, y) & q(y, z) -> p(x, z)\n", skewed, theory=theory)
    part = r2n.KnownBodyGrounder().ground(r2n.Store(kb)).ground_rules[0]
    assert len(part) == 11
    assert part.estimate == (8 if by_database else 11)
    with pytest.raises(GroundingError, match="more than max_groundings"):
        r2n.KnownBodyGrounder(len(part) - 1).ground(r2n.Store(kb))
