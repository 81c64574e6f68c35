"""A trained network, explained: what the input layer's part of an answer rests on."""

from collections.abc import Sequence

from r2n.explanation.feature_effects import feature_effects
from r2n.explanation.records import InputReasons
from r2n.explanation.similar_facts import similar_facts
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.model.atom_logits import AtomLogits


def input_reasons(members: Sequence[AtomLogits], knowledge: KnowledgeBase, code: int, *, most: int = 5) -> InputReasons:
    """The known atoms that the input layer reads as it reads an atom, and what its features do to the logit.

    `members` are the networks of an ensemble, or one, and `knowledge` is in their language. At most `most` known atoms
    and words are told. Nothing is, where the networks read nothing of constants (`evidence_input = "only"`). Rules that
    are counted beside a network are not looked at.
    """
    model = members[0].model
    if model.evidence_input == "only" and not model.input_score:
        return InputReasons()
    similar = similar_facts(members, knowledge, code, most=most)
    return InputReasons(similar, feature_effects(members, code, most=most))
