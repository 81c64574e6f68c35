"""Evidence and the knowledge base."""

import numpy as np
import pytest

import r2n
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import DataError
from tests.featured_problem import featured_problem
from tests.unit.grounding.small_knowledge import knowledge


def test_evidence_checks_itself_and_is_read_only() -> None:
    for atoms in ([2, 1], [1, 1]):
        with pytest.raises(DataError, match="ascending order"):
            Evidence(np.array(atoms, np.int64), np.ones(2, bool))
    evidence = Evidence(np.array([1, 2], np.int64), np.array([True, False]))
    with pytest.raises(ValueError, match="read-only"):
        evidence.atoms[0] = 5
    assert (len(evidence), len(Evidence.empty())) == (2, 0)


def test_facts_true_and_false_by_predicate() -> None:
    kb = knowledge("", "smokes(ann) knows(cy,bob)", "smokes(bob) takes(ann,tea)")
    names = kb.language.constants

    def listed(rows: np.ndarray) -> list[tuple[str, ...]]:
        return [tuple(names[c] for c in row) for row in rows.tolist()]

    smokes, knows, takes = (kb.language.predicate(name) for name in ("smokes", "knows", "takes"))
    assert listed(kb.facts(smokes)) == [("ann",)]
    assert listed(kb.false_facts(smokes)) == [("bob",)]
    assert listed(kb.facts(knows)) == [("cy", "bob")]
    assert listed(kb.facts(takes)) == []
    assert listed(kb.false_facts(takes)) == [("ann", "tea")]


def test_nothing_at_all_is_legal() -> None:
    kb = KnowledgeBase.build(r2n.Theory())
    assert kb.base.size == 0
    assert len(kb.evidence) == 0
    assert len(r2n.FullGrounder().ground(r2n.Store(kb))) == 0


def test_training_constants_are_those_that_open_labels_speak_of() -> None:
    known = featured_problem().knowledge  # p4 is in a closed fact and in a query, i0 to i2 in labels of alike
    names = [known.language.constants[i] for i in known.training_constants]
    assert names == ["ann", "bob", "i0", "i1", "i2", "p1", "p2", "p3"]
    assert len(knowledge("", "").training_constants) == 0
