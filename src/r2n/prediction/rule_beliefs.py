"""A trained network, asked: what it holds of the atoms of an implicit rule's ground rules, as trees read it.

What is known is taken as known. Of other atoms the network's answer counts, above a probability of one half; where the
training compared atoms of a row and gave their logits no such meaning, above the number that tells best the known facts
of the predicate from all else. What the network says of an atom that is known is asked as if it were not, where it
learned to answer so.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64

from r2n.explanation.learned_clauses import MOST_GROUND_RULES, Truths
from r2n.graph.factor_graph import FactorGraph
from r2n.graph.known_states import known_truths
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.reciprocal import counterparts
from r2n.logic.formula import Atom
from r2n.logic.theory import Rule
from r2n.model.atom_logits import AtomLogits
from r2n.prediction.trained import Trained

FOLDS = 4  # in which the atoms of a position are hidden, where they stand at others too
MOST_HIDDEN = 2**28  # atoms of the graph, times passes: above, the network is not asked as if an atom were not known


@dataclass(frozen=True, eq=False)
class PlainRule:
    """An implicit rule as the problem states it, without reciprocals, and the positions that each of its atoms has."""

    rule: Rule
    positions: tuple[int, ...]

    @classmethod
    def of(cls, rule: Rule, base: HerbrandBase) -> "PlainRule":
        """The rule of the training's language; of atoms that say the same, the first."""
        mirrored = {p.name: p.reciprocal_of for p in base.language.predicates if p.reciprocal_of is not None}
        atoms: dict[Atom, int] = {}
        for position, atom in enumerate(rule.atoms):
            name = mirrored.get(atom.predicate)
            plain = atom if name is None else Atom(name, atom.terms[::-1])
            atoms.setdefault(plain, position)
        return cls(replace(rule, atoms=tuple(atoms)), tuple(atoms.values()))


def ground_rules_of(graph: FactorGraph, name: str) -> Int64[np.ndarray, "ground_rules positions"]:
    """The distinct ground rules of a rule, as codes of their atoms; at most so many as trees look at."""
    j = [rule.name for rule in graph.rules].index(name)
    codes = graph.atoms[graph.neighbours[j]].numpy()
    if graph.answered < len(graph.atoms):
        codes = np.unique(codes, axis=0)
    if len(codes) <= MOST_GROUND_RULES:
        return codes
    return codes[np.sort(np.random.default_rng(0).permutation(len(codes))[:MOST_GROUND_RULES])]


def rule_truths(trained: Trained, plain: PlainRule, codes: Int64[np.ndarray, "ground_rules positions"]) -> Truths:
    """What is held of each position of the rule, in ground rules given by codes of the training's language.

    One that has an atom at two positions tells nothing of how they are related, and is left out.
    """
    base = trained.model.base
    own = _plain_codes(base, codes[:, list(plain.positions)])
    own = own[(np.diff(np.sort(own, axis=1), axis=1) > 0).all(axis=1)]
    atoms, place = np.unique(own, return_inverse=True)
    place = place.reshape(own.shape)
    known = known_truths(base, atoms, trained.knowledge.evidence)
    logits = trained.logits(atoms)
    threshold = _thresholds(trained, atoms, known, logits)
    answers = logits > threshold
    believed = np.where(known >= 0, known == 1, answers)
    says = answers[place]
    if _may_be_hidden(trained, len(plain.positions)):
        for i in range(len(plain.positions)):
            said = _said_if_hidden(trained, atoms, logits, place, i)
            says[:, i] = (said > threshold)[place[:, i]]
    return Truths(known[place], believed[place], says)


def _plain_codes(base: HerbrandBase, codes: np.ndarray) -> np.ndarray:
    """The codes of what says the same without reciprocals."""
    flat = codes.ravel()
    mirrored = np.array([p.reciprocal_of is not None for p in base.language.predicates], bool)
    which = mirrored[base.decode(flat)[0]]
    if which.any():
        flat = flat.copy()
        flat[which] = counterparts(base, flat[which])
    return flat.reshape(codes.shape)


def _thresholds(trained: Trained, atoms: Codes, known: np.ndarray, logits: np.ndarray) -> Float64[np.ndarray, " atoms"]:
    """For each atom the logit above which it is held true."""
    if trained.options.training.loss == "bce" and trained.model.counted is None:
        return np.zeros(len(atoms))
    index, found = trained.model.base.decode(atoms)[0], np.zeros(len(atoms))
    for predicate in np.unique(index):
        own = index == predicate
        found[own] = _telling(logits[own], known[own] == 1)
    return found


def _telling(logits: Float64[np.ndarray, " atoms"], true: Bool[np.ndarray, " atoms"]) -> float:
    """Just below the logit down to which facts are told from other atoms with the best F1; all are false of none."""
    if not true.any():
        return float("inf")
    order = np.argsort(-logits, kind="stable")
    scores = 2 * np.cumsum(true[order]) / (np.arange(1, len(order) + 1) + true.sum())
    return float(np.nextafter(logits[order][scores.argmax()], -np.inf))


def _may_be_hidden(trained: Trained, positions: int) -> bool:
    """Whether the network learned to answer for hidden atoms, over ground rules that are everybody's."""
    if trained.options.training.hiding == 0 or trained.model.counted is not None:
        return False
    whole = trained.members[0].whole
    return whole is not None and len(whole.graph.atoms) * positions * FOLDS * len(trained.members) <= MOST_HIDDEN


def _said_if_hidden(
    trained: Trained, atoms: Codes, logits: Float64[np.ndarray, " atoms"], place: np.ndarray, position: int
) -> Float64[np.ndarray, " atoms"]:
    """The logits, those of one position's atoms as they are while the atoms are hidden, some at a time."""
    whole = trained.members[0].whole
    assert whole is not None
    own = np.unique(place[:, position])
    own = own[whole.graph.contains(torch.from_numpy(atoms[own])).numpy()]
    folds = FOLDS if np.isin(own, np.delete(place, position, axis=1)).any() else 1
    said = logits.copy()
    for some in (own[fold::folds] for fold in range(folds)):
        if len(some):
            said[some] = np.mean([_hidden_logits(member, atoms[some]) for member in trained.members], axis=0)
    return said


def _hidden_logits(logits: AtomLogits, codes: Codes) -> Float64[np.ndarray, " atoms"]:
    """The logits of atoms that are hidden all together, with what says the same of them."""
    made, model = logits.whole, logits.model
    assert made is not None
    mirrored = counterparts(model.base, codes)
    both = np.unique(np.concatenate([codes, mirrored[mirrored >= 0]]))
    there = both[made.graph.contains(torch.from_numpy(both)).numpy()]
    hidden = torch.zeros(len(made.graph.atoms), dtype=torch.bool)
    hidden[torch.from_numpy(made.rows(there))] = True
    was_training = model.training
    model.eval()
    with torch.no_grad():
        device = model.device
        out = model(made.layout, hidden=hidden.to(device), known=made.known.to(device), rule_outputs=False).atoms
    model.train(was_training)
    return out.double().cpu().numpy()[made.rows(codes)]
