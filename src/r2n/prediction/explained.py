"""A trained network, asked why: what explanations need of a predictor."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from r2n.errors import ConfigError, DataError
from r2n.explanation.explain import Wanted, explain
from r2n.explanation.records import Belief, Explanation
from r2n.explanation.subject import Otherwise, Subject
from r2n.explanation.telling import all_reasons
from r2n.knowledge.atom_text import parse_atom
from r2n.knowledge.features import constant_labels
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import Evidence
from r2n.model.atom_logits import AtomLogits
from r2n.prediction.answers import Question

if TYPE_CHECKING:
    from r2n.prediction.predictor import Predictor


def explained(predictor: "Predictor", atom: str, *, depth: int, top: int | None, against: str | None) -> Explanation:
    """Why an atom is answered as it is; what cannot be answered is refused as a question is."""
    if depth < 0 or (top is not None and top < 1):
        raise ConfigError(
            f"depth is 0 or more, and top is 1 or more, not {depth} and {top}", hint="depth = 0 tells the answer alone"
        )
    code, other = _one(predictor, atom), None if against is None else _one(predictor, against)
    if code == other:
        raise ConfigError(f"{atom} is compared to itself", hint="give another atom as `against`")
    asked = np.array([code] if other is None else [code, other], np.int64)
    predictor.logits(asked)  # refuses what has no answer
    found = explain(subject_of(predictor), code, Wanted(depth, top, other))
    return replace(found, labels=_labels(predictor, found))


def _labels(predictor: "Predictor", found: Explanation) -> tuple[tuple[str, str], ...]:
    """What people call the constants of an explanation, in the order in which they stand in it."""
    contrast = () if found.contrast is None else found.contrast.reasons
    reasons = list(all_reasons((*found.reasons, *contrast)))
    atoms = [found.atom, *(member.atom for reason in reasons for member in reason.because)]
    atoms += [] if found.contrast is None else [found.contrast.other]
    parsed = [atom for atom in map(parse_atom, dict.fromkeys(atoms)) if atom is not None]
    names = dict.fromkeys(term for atom in parsed for term in atom.terms if term is not None)
    knowledge = predictor.changed.problem.knowledge
    return tuple(constant_labels(knowledge.features, knowledge.language, names, with_texts=True).items())


def _one(predictor: "Predictor", text: str) -> int:
    asked = Question.parse(predictor.base, text)
    if len(asked) != 1:
        raise DataError(
            f"'{text}' asks for {len(asked):,} atoms, and one is explained at a time",
            hint=f'ask first: r2n predict RUN "{text}", then explain one of the answers',
        )
    return int(asked.codes()[0])


def subject_of(predictor: "Predictor") -> Subject:
    """What explanations ask of a predictor."""
    calibration = predictor.calibration
    calibrated = None if calibration is None else calibration.in_words

    def beliefs(codes: Codes) -> list[Belief]:
        said = predictor.columns(subject.plain(codes))
        known = [bool(truth) if stated else None for truth, stated in zip(said.truths, said.is_stated, strict=True)]
        spread = [None] * len(known) if said.spread is None else said.spread.tolist()
        columns = said.probability.tolist(), said.logits.tolist(), known, said.closed.tolist(), spread
        return [Belief(*parts, calibrated=calibrated) for parts in zip(*columns, strict=True)]

    def otherwise(what: Otherwise) -> tuple[AtomLogits, ...]:
        if what.without_rule is not None:
            return tuple(member.without_rules([what.without_rule]) for member in predictor.members)
        changed = _without(predictor, subject.plain(what.unknown))
        if len(what.false):
            changed = changed.with_facts(Evidence(np.sort(what.false), np.zeros(len(what.false), bool)))
        return changed.members

    half = 0.0 if calibration is None else calibration.shift
    subject = Subject(predictor.members, predictor.knowledge, beliefs, calibration or expit, otherwise, half)
    return subject


def _without(predictor: "Predictor", codes: Codes) -> "Predictor":
    """Facts taken back, however often they were told; a new constant that they alone name is declared, and stays."""
    language = predictor.base.language
    new = {language.constant_id(name) for name in predictor.changed.new_constants}
    parts = [domain for domain in language.domains if not domain.parts]
    declared = {d.name: [language.constants[i] for i in language.members(d).tolist() if i in new] for d in parts}
    if new:
        predictor = predictor.with_facts([], domains={name: held for name, held in declared.items() if held})
    evidence = predictor.changed.problem.train
    codes = np.unique(codes)
    while len(codes):
        truth = evidence.truth[np.searchsorted(evidence.atoms, codes)]
        predictor = predictor.without_facts(Evidence(codes, truth))
        evidence = predictor.changed.problem.train
        codes = codes[np.isin(codes, evidence.atoms)]
    return predictor
