"""Negative samples: typed, narrow, never training facts, and filtered by nothing else."""

import numpy as np
import pytest

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import ConfigError
from r2n.options import SamplingOptions
from r2n.training import negatives as module
from r2n.training.negatives import Negatives, corruptions, count_negatives, draw_negatives, labelled_shares
from tests.unit.grounding.small_knowledge import codes, knowledge

THEORY = """
domain country = {france, italy, malta, spain}
domain island = {crete, malta}
domain region = {asia, europe, oceania}
domain place = country | island | region
predicate liesIn(place, place)
predicate near(country, country) closed
predicate big(country)
predicate flies(country, island, region)
"""
FACTS = "liesIn(italy,europe) liesIn(spain,europe) liesIn(malta,europe) big(italy) near(italy,france)"


def known(facts: str = FACTS, false: str = "") -> KnowledgeBase:
    return knowledge("", facts, false, THEORY)


def drawn_of(base: HerbrandBase, evidence: Evidence, seed: int = 0, **options: object) -> tuple[np.ndarray, np.ndarray]:
    """Facts and their negatives; the count made before is never too small, and exact for all of them."""
    sampling = SamplingOptions.model_validate(options)
    drawn = draw_negatives(base, evidence, sampling, np.random.default_rng(seed))
    assert count_negatives(base, evidence, sampling) >= np.count_nonzero(drawn.atoms >= 0)
    assert count_negatives(base, evidence, sampling) <= drawn.atoms.size
    return drawn.facts, drawn.atoms


def of_fact(base: KnowledgeBase, fact: str, positions: list[int] | None = None) -> list[set[str]]:
    """The corruptions of one fact, position by position."""
    facts = base.evidence.atoms[base.evidence.truth]
    found = corruptions(base.base, codes(base, fact), facts, positions=positions)
    rows, negatives = found.facts, found.atoms
    assert base.base.names(rows) == [fact] * len(rows)
    return [set(base.base.names(row[row >= 0])) for row in negatives]


def test_a_corruption_stays_in_the_narrowest_domain_of_what_it_replaces() -> None:
    """liesIn takes any place, but a country is replaced by countries and a region by regions."""
    first, second = of_fact(known(), "liesIn(italy, europe)")
    assert first == {"liesIn(france, europe)"}  # spain and malta are training facts; crete and asia no countries
    assert second == {"liesIn(italy, asia)", "liesIn(italy, oceania)"}


def test_samples_are_drawn_by_the_generator_from_the_same_corruptions_none_twice() -> None:
    base = known()
    facts = base.evidence.atoms[base.evidence.truth]
    found = corruptions(base.base, facts, facts)
    rows, listed = found.facts, found.atoms

    def sampled(seed: int, samples: int = 2) -> np.ndarray:
        generator = np.random.default_rng(seed)
        drawn = corruptions(base.base, facts, facts, samples=samples, generator=generator)
        assert drawn.facts.tolist() == rows.tolist()
        return drawn.atoms

    assert np.array_equal(sampled(0, 50), listed), "there are no more than these"
    drawn = [sampled(seed) for seed in range(60)]
    for i, many in enumerate(listed):
        some = [[code for code in part[i].tolist() if code >= 0] for part in drawn]
        assert {code for codes in some for code in codes} == set(many.tolist()) - {-1}
        assert all(len(set(codes)) == len(codes) <= 2 for codes in some)
    assert np.array_equal(drawn[0], sampled(0))
    assert not np.array_equal(drawn[0], drawn[1])


def test_a_few_samples_of_many_constants_need_no_permutation_of_them() -> None:
    """It drew as many random numbers as there are constants, for each group of facts and step."""
    people = " ".join(f"p{i}" for i in range(300)).replace(" ", ", ")
    base = knowledge(
        "", "likes(p0,p1) likes(p2,p3)", "", f"domain person = {{{people}}}\npredicate likes(person, person)"
    )
    facts = base.evidence.atoms

    def drawn() -> tuple[np.ndarray, object]:
        generator = np.random.default_rng(0)
        found = corruptions(base.base, facts, facts, positions=[1], samples=5, generator=generator)
        return found.atoms, generator.bit_generator.state["state"]

    atoms, state = drawn()
    assert [len(set(row)) for row in atoms.tolist()] == [5, 5]
    assert np.array_equal(atoms, drawn()[0])
    other, states = np.random.default_rng(0), []
    for _ in range(100):
        other.bit_generator.random_raw()
        states.append(other.bit_generator.state["state"])
    assert state in states, "fewer than 100 random numbers"


def test_sampling_needs_a_generator() -> None:
    base = known()
    with pytest.raises(ConfigError, match="sampled corruptions need a generator"):
        corruptions(base.base, base.evidence.atoms, base.evidence.atoms, samples=1)


def test_too_many_to_list_is_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LISTED", 3)
    with pytest.raises(ConfigError) as caught:
        of_fact(known(), "big(italy)")
    expected = "1 facts have 4 corruptions each, too many to list"
    assert str(caught.value) == f"{expected}\n  draw a sample: set training.negatives to a number"


def test_closed_facts_are_left_alone_unless_they_are_asked() -> None:
    base = known()
    rows, _ = drawn_of(base.base, base.evidence, corrupted_positions=[-1])
    assert len(rows) == 4
    assert not any(name.startswith("near") for name in base.base.names(rows))
    rows, negatives = drawn_of(base.base, base.evidence, corrupted_positions=[-1], ask_closed=True)
    near = [negatives[i] for i, name in enumerate(base.base.names(rows)) if name == "near(italy, france)"]
    found = [set(base.base.names(row[row >= 0])) for row in near]
    assert found == [
        {"near(france, france)", "near(malta, france)", "near(spain, france)"},
        {"near(italy, italy)", "near(italy, malta)", "near(italy, spain)"},
    ]


def test_facts_stated_false_are_not_corrupted_but_may_be_corruptions() -> None:
    base = known("liesIn(italy,europe)", false="liesIn(italy,asia)")
    rows, negatives = drawn_of(base.base, base.evidence)
    assert set(base.base.names(rows)) == {"liesIn(italy, europe)"}
    assert np.isin(codes(base, "liesIn(italy, asia)"), negatives).all()


def test_all_negatives_are_counted_before_they_are_listed() -> None:
    base = known()
    assert count_negatives(base.base, base.evidence, SamplingOptions()) == 2 * (4 + 3) + (2 + 3) + 4
    assert count_negatives(base.base, base.evidence, SamplingOptions(negatives=2)) == 2 * 7
    assert count_negatives(base.base, base.evidence, SamplingOptions(negatives=3)) == 2 * (3 + 3) + (2 + 3) + 3
    assert Negatives.none().codes.tolist() == []


def test_the_share_that_is_labelled_is_by_the_prior_where_nothing_is_labelled_false() -> None:
    base = known()
    big = [predicate.name for predicate in base.language.predicates].index("big")
    shares = labelled_shares(base.base, base.evidence, 0.5)
    assert shares[big] == 1 / (0.5 * 4), "one of half of four countries"
    assert (np.delete(shares, big) == 1).all(), "of one position, and open"
    assert labelled_shares(base.base, base.evidence, 0.1)[big] == 1, "more are labelled than are assumed"
    stated = known(f"{FACTS}", false="big(spain)")
    assert (labelled_shares(stated.base, stated.evidence, 0.5) == 1).all()
