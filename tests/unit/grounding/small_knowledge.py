"""A knowledge base small enough to ground by hand."""

import numpy as np

import r2n
from r2n.grounding.ground_rules import Grounding

THEORY = """\
domain person = {ann, bob, cy}
domain drug = {tea}
predicate smokes(person)
predicate knows(person, person) closed
predicate takes(person, drug)
"""


def knowledge(rules: str, facts: str = "", false: str = "", theory: str = THEORY) -> r2n.KnowledgeBase:
    """From rules and facts written `smokes(ann) knows(ann,bob)`."""
    built = r2n.KnowledgeBase.build(r2n.parse_theory(theory + rules))
    codes = {name: code for code, name in enumerate(built.base.names(np.arange(built.base.size)))}
    truths = {codes[name.replace(",", ", ")]: True for name in facts.split()}
    truths |= {codes[name.replace(",", ", ")]: False for name in false.split()}
    atoms = np.array(sorted(truths), np.int64)
    evidence = r2n.Evidence(atoms, np.array([truths[code] for code in atoms.tolist()], bool))
    return r2n.KnowledgeBase(built.theory, built.language, evidence)


def named(knowledge: r2n.KnowledgeBase, grounding: Grounding) -> list[list[str]]:
    """The ground rules of all rules, each as its atoms in one text."""
    names = knowledge.base.names
    return [[" ".join(names(row)) for row in part.atoms] for part in grounding.ground_rules]


def codes(knowledge: r2n.KnowledgeBase, *atoms: str) -> np.ndarray:
    """Codes of atoms by name."""
    everything = knowledge.base.names(np.arange(knowledge.base.size))
    return np.array(sorted(everything.index(atom) for atom in atoms), np.int64)
