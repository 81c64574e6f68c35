"""A trained network, explained: the known atoms that the input layer reads most as it reads another.

Two atoms are as similar as the cosine of their Emb^0 says, without what is known of them.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64

from r2n.explanation.records import Similar
from r2n.graph.sources import Ungrounded
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.model.atom_logits import AtomLogits
from r2n.model.r2n import R2N

FACTS_COMPARED = 20_000


def similar_facts(
    members: Sequence[AtomLogits], knowledge: KnowledgeBase, code: int, *, most: int
) -> tuple[Similar, ...]:
    """The known atoms of the same predicate that are most similar to an atom, by the mean over the networks.

    Known are those that are stated, not those of a closed world. At most `FACTS_COMPARED` are compared: first those
    that share a constant with the atom, then an even sample of the others. None has a constant without a vector, and
    where the atom has one, nothing is similar.
    """
    compared = _compared(knowledge, code)
    is_blank = _is_blank(members[0].model, np.append(compared, code))
    compared = compared[~is_blank[:-1]]
    if is_blank[-1] or not len(compared):
        return ()
    similarity = np.mean([_cosines(member.model, code, compared) for member in members], axis=0)
    best = np.lexsort((compared, -similarity))[:most]
    known = knowledge.evidence.truth[np.searchsorted(knowledge.evidence.atoms, compared[best])]
    rows = zip(knowledge.base.names(compared[best]), known.tolist(), similarity[best].tolist(), strict=True)
    return tuple(Similar(*row) for row in rows)


def _compared(knowledge: KnowledgeBase, code: int) -> Codes:
    """The known atoms that an atom is compared to."""
    base, atoms = knowledge.base, knowledge.evidence.atoms
    index, arguments = base.decode(np.array([code]))
    start, end = np.searchsorted(atoms, base.offsets[index[0] : index[0] + 2])
    own = atoms[start:end]
    own = own[(own != code) & ~closed_atoms(base, own)]
    if len(own) <= FACTS_COMPARED:
        return own
    shares = np.isin(base.decode(own)[1], arguments[arguments >= 0]).any(axis=1)
    near = _evenly(own[shares], FACTS_COMPARED)
    return np.concatenate([near, _evenly(own[~shares], FACTS_COMPARED - len(near))])


def _evenly(codes: Codes, count: int) -> Codes:
    """So many of them, from end to end."""
    return codes[np.arange(count) * len(codes) // count] if count < len(codes) else codes


def _is_blank(model: R2N, codes: Int64[np.ndarray, " atoms"]) -> Bool[np.ndarray, " atoms"]:
    """Whether each atom has a constant without a vector."""
    if model.trained_ids is None:
        return np.zeros(len(codes), bool)
    arguments = model.base.decode(codes)[1]
    return np.any((arguments >= 0) & (model.trained_ids.numpy()[arguments] < 0), axis=1)


@torch.no_grad()
def _cosines(model: R2N, code: int, codes: Int64[np.ndarray, " facts"]) -> Float64[np.ndarray, " facts"]:
    """The cosines of the embeddings of atoms with that of another; 0 where one is nothing but zeros."""
    graph = Ungrounded().around(np.append(codes, code))
    embedding = model.eval().embed(model.lay_out(graph, "indexed")).double()
    embedding = torch.nn.functional.normalize(embedding, dim=1)
    cosines = (embedding @ embedding[graph.rows(torch.tensor([code]))[0]]).cpu().numpy()
    return cosines[graph.rows(torch.from_numpy(codes)).numpy()]
