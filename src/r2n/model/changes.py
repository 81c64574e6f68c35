"""A problem with changed facts, constants and features."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from r2n.data.atom_text import facts_from_texts, looks_like_atom
from r2n.data.candidates import find_candidates
from r2n.data.herbrand import Codes, HerbrandBase, index_among
from r2n.data.knowledge_base import (
    EncodedFacts,
    Evidence,
    GivenFeatures,
    KnowledgeBase,
    Members,
    check_declared,
    constant_ids,
    encode_facts,
    grown,
    grown_features,
    members_by_atoms,
    members_by_facts,
    members_of,
    recoded,
)
from r2n.data.problem import Problem
from r2n.data.records import shortened
from r2n.data.tables import Facts, Table, read_facts
from r2n.errors import ConfigError, DataError
from r2n.logic.language import Language
from r2n.logic.theory import Theory
from r2n.network.constant_embedding import ModuleChannel
from r2n.network.r2n import R2N
from r2n.network.regression import Regression
from r2n.options import ModelOptions

Given = str | Path | Table | Evidence | object
"""Facts: `p(a, b)` (`!p(a, b)` where it is false), a file, a Table or what one takes, Evidence, or several of these."""


@dataclass(frozen=True, eq=False)
class ChangedProblem:
    """A problem, and what was known in training.

    A new constant is in the language if it was declared, or as long as a fact names it; the constants of the training
    stay.
    """

    problem: Problem
    training: KnowledgeBase
    declared: tuple[tuple[str, str], ...] = ()
    features: tuple[tuple[str, str, object], ...] = ()

    @classmethod
    def from_problem(cls, problem: Problem) -> "ChangedProblem":
        """A problem as it was in training."""
        return cls(problem, problem.knowledge)

    @property
    def trained(self) -> Language:
        """The language of the training."""
        return self.training.language

    @property
    def base(self) -> HerbrandBase:
        """The Herbrand base of the language as it is now."""
        return self.problem.knowledge.base

    @property
    def new_constants(self) -> tuple[str, ...]:
        """The constants that the training did not have."""
        constants = self.problem.knowledge.language.constants
        is_new = constant_ids(self.problem.knowledge.language, self.trained) < 0
        return tuple(constants[i] for i in np.flatnonzero(is_new))

    def with_facts(
        self, given: Given, domains: Mapping[str, Iterable[str]], features: GivenFeatures | None = None
    ) -> "ChangedProblem":
        """The problem with more facts; a contradiction is refused."""
        declared = check_declared(self.trained, domains)
        groups, stated = _gathered(given, self.problem.knowledge.theory, self.base)
        language = grown(self.problem.knowledge.language, members_by_facts(self.trained, groups), declared)
        base = HerbrandBase(language)
        added, encoded = self._encoded(base, groups, stated)
        old, _ = _recoded(self.problem.train, self.base, base)
        _check(base, old, added, encoded)
        more = [(domain, name) for domain, names in declared.items() for name in names]
        of_new = [(domain, name, value) for domain, part in (features or {}).items() for name, value in part.items()]
        if again := {item[:2] for item in self.features} & {item[:2] for item in of_new}:
            hint = "begin with the model that has no features of it yet"
            raise DataError(f"'{min(again)[1]}' has features already", hint=hint)
        changed = replace(self, declared=(*self.declared, *more), features=(*self.features, *of_new))
        return changed._settled(base, _joined([old, added]), {item[:2] for item in of_new})

    def without_facts(self, given: Given) -> "ChangedProblem":
        """The problem with fewer facts; what is not there is refused."""
        groups, stated = _gathered(given, self.problem.knowledge.theory, self.base)
        old = self.problem.train
        removed, encoded = self._encoded(self.base, groups, stated)
        _check(self.base, old, removed, encoded, removed=True)
        kept = ~np.isin(old.atoms, removed.atoms)
        return self._settled(self.base, Evidence(old.atoms[kept], old.truth[kept]))

    def _encoded(
        self, base: HerbrandBase, groups: list[Facts], stated: list[Evidence]
    ) -> tuple[Evidence, EncodedFacts]:
        """The given facts in a base, each once."""
        encoded, _ = encode_facts(base, groups)
        parts = [Evidence.from_encoded(encoded, base)]
        for part in stated:
            if len(part) and (part.atoms[0] < 0 or part.atoms[-1] >= self.base.size):
                what = f"the evidence has a code outside the Herbrand base of {self.base.size:,} atoms"
                raise DataError(what, hint="codes are those of `Model.base`; new constants come as text or tables")
            parts.append(_recoded(part, self.base, base)[0])
        for i, part in enumerate(parts[1:], start=1):
            _check(base, _joined(parts[:i]), part, None)
        return _joined(parts), encoded

    def _settled(
        self, base: HerbrandBase, evidence: Evidence, wanted: Set[tuple[str, str]] = frozenset()
    ) -> "ChangedProblem":
        """The evidence in the smallest language that holds it; other features are dropped, unless `wanted`."""
        language = self._language(base, evidence)
        new = np.flatnonzero(constant_ids(language, self.trained) < 0)
        members = ((domain.name, np.intersect1d(new, language.members(domain))) for domain in language.domains)
        inside = {(domain, language.constants[i]) for domain, ids in members for i in ids}
        features = tuple(item for item in self.features if item[:2] in inside | wanted)
        settled = HerbrandBase(language)
        evidence, _ = _recoded(evidence, base, settled)
        queries = {split: _recoded(part, self.base, settled)[0] for split, part in self.problem.queries.items()}
        given = self.problem.candidates.items()
        sources = {name: replace(source, given=recoded(source.given, self.base, settled)) for name, source in given}
        by_domain: dict[str, dict[str, object]] = {}
        for domain, name, value in features:
            by_domain.setdefault(domain, {})[name] = value
        all_features = grown_features(self.training.features, self.trained, language, by_domain)
        known = replace(self.problem.knowledge, language=language, evidence=evidence, features=all_features)
        problem = replace(self.problem, knowledge=known, queries=queries, candidates=sources)
        found = find_candidates(settled, sources, problem.atoms, known.features)
        problem = replace(problem, knowledge=replace(known, candidates=found))
        return ChangedProblem(problem, self.training, self.declared, features)

    def _language(self, base: HerbrandBase, evidence: Evidence) -> Language:
        """The training's language with the declared constants and those of the evidence, given in a larger base."""
        more: Members = {}
        for domain, name in self.declared:
            more.setdefault(domain, set()).add(name)
        language = grown(self.trained, members_by_atoms(self.trained, base, evidence.atoms), more)
        lost = recoded(evidence.atoms, base, HerbrandBase(language)) < 0
        if lost.any():  # what said in which part of a union a constant is was taken back: it stays there
            language = grown(language, members_of(base.language, np.unique(base.decode(evidence.atoms[lost])[1])))
        own = self.problem.knowledge.language
        same = own.constants == language.constants and all(map(np.array_equal, own.extensions, language.extensions))
        return own if same else language


def _gathered(given: Given, theory: Theory, base: HerbrandBase) -> tuple[list[Facts], list[Evidence]]:
    """What is given, as facts and as evidence."""
    items = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
    texts = [item for item in items if isinstance(item, str) and looks_like_atom(item)]
    stated, groups = [item for item in items if isinstance(item, Evidence)], list(facts_from_texts(texts))
    for item in items:
        if not isinstance(item, Evidence) and not (isinstance(item, str) and looks_like_atom(item)):
            groups += read_facts(_table(item, base), theory=theory).facts
    return groups, stated


def _table(item: Given, base: HerbrandBase) -> Table:
    if isinstance(item, Table):
        return item
    try:
        is_text = isinstance(item, str) and not Path(item).exists()
    except OSError:  # a name that no system takes
        is_text = True
    if is_text:
        example = f' as "{base.names(np.zeros(1, np.int64))[0]}"' if base.size else ""
        hint = f"write a fact{example}, with ! before it if it is false"
        raise DataError(f"'{shortened(str(item))}' is neither a fact nor a file", hint=hint)
    if not isinstance(item, str | Path) and not hasattr(item, "__arrow_c_stream__"):
        raise ConfigError(f"facts are text, files, tables or Evidence, not a {type(item).__name__}")
    return Table(item)


def _recoded(evidence: Evidence, old: HerbrandBase, new: HerbrandBase) -> tuple[Evidence, Codes]:
    """The same evidence in another base, ascending, and the order of its atoms there."""
    atoms = recoded(evidence.atoms, old, new)
    order = np.argsort(atoms)
    return Evidence(atoms[order], evidence.truth[order]), order


def _joined(parts: list[Evidence]) -> Evidence:
    """Evidence that does not contradict itself, as one."""
    atoms, first = np.unique(np.concatenate([part.atoms for part in parts]), return_index=True)
    return Evidence(atoms, np.concatenate([part.truth for part in parts])[first])


def _check(
    base: HerbrandBase, old: Evidence, given: Evidence, encoded: EncodedFacts | None, *, removed: bool = False
) -> None:
    """Refuse facts that contradict what is known, or that are `removed` and not among the facts."""
    rows = index_among(given.atoms, old.atoms)
    known = np.where(rows >= 0, np.append(old.truth, False)[rows], -1)
    absent = known < 0
    wrong = (known != given.truth) & (removed | ~absent)
    if not wrong.any():
        return
    is_absent = removed and bool(absent.any())
    number = int((absent if is_absent else wrong).argmax())
    code, truth, where = given.atoms[number : number + 1], str(bool(given.truth[number])).lower(), None
    if encoded is not None and (encoded.codes == code).any():
        where = encoded.location(int((encoded.codes == code).argmax()))
    name, other = base.names(code)[0], "false" if truth == "true" else "true"
    if not removed:
        hint = "take back what is known first: without_facts, or --without"
        raise DataError(f"{name} is known to be {other}, and now given as {truth}", where=where, hint=hint)
    why = "is not among the facts, so" if is_absent else f"is known to be {other}: as {truth}"
    raise DataError(f"{name} {why} it cannot be taken back", where=where)


def with_features(trained: R2N, training: KnowledgeBase, now: KnowledgeBase, options: ModelOptions) -> R2N:
    """The network with the features of what is known now; weights, vocabularies and scales are the training's."""
    ids = torch.from_numpy(constant_ids(now.language, training.language))
    known_then = replace(now, evidence=_recoded(training.evidence, training.base, now.base)[0])
    encoders = {part.domain: part.module for part in trained.modules() if isinstance(part, ModuleChannel)}
    with torch.random.fork_rng(devices=[]):
        model = R2N.build(known_then, options, encoders=encoders, new=np.flatnonzero(ids.numpy() < 0))
    weights = trained.state_dict()
    vectors, rows = torch.zeros_like(model.constants.vectors), model.constants.row_of
    same = ((ids >= 0) & (rows >= 0)).nonzero().flatten()
    vectors[rows[same]] = weights["constants.vectors"][trained.constants.row_of[ids[same]]]
    try:
        model.load_state_dict(weights | {"constants.vectors": vectors})
    except RuntimeError as error:
        what = "the new constants do not fit the features that the network was trained on"
        hint = "give features to the new constants of a domain as its other constants have them"
        raise ConfigError(what, hint=hint) from error
    if isinstance(model.atom_embedding, Regression):
        model.atom_embedding.know(now)
    has_vector = ids >= 0
    for part in now.features.values():
        has_vector[torch.from_numpy(part.constants)] = True
    return model.eval().on_base(now.base, torch.where(has_vector, torch.arange(len(ids)), -1))
