"""A problem inside a run folder."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from r2n.data.candidates import Candidates, CandidateSource
from r2n.data.features import Features
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.data.problem import LoadReport, Problem
from r2n.errors import CheckpointError, DataError, Location, R2NError
from r2n.logic.formula import And, Atom, Constant, Formula, Iff, Implies, Not, Or, Term, Unequal, Variable, Xor
from r2n.logic.language import Domain, Language, Predicate
from r2n.logic.theory import Rule, Theory
from r2n.options import Options

_CONNECTIVES: dict[str, Any] = {"not": Not, "and": And, "or": Or, "implies": Implies, "iff": Iff, "xor": Xor}
_NAMES = {connective: name for name, connective in _CONNECTIVES.items()}


def theory_record(theory: Theory) -> dict[str, Any]:
    """All of a theory except where it was read."""
    rules = [
        {
            "name": rule.name,
            "formula": _formula_record(rule.formula),
            "atoms": [_formula_record(atom) for atom in rule.atoms],
            "guards": [_formula_record(guard) for guard in rule.guards],
            "types": rule.types,
            "weight": rule.weight,
        }
        for rule in theory.rules
    ]
    return {"signature": signature_record(theory.domains, theory.predicates), "rules": rules}


def theory_from_record(record: dict[str, Any], source: str | None) -> Theory:
    """The theory of a record."""
    rules = []
    for rule in record["rules"]:
        types = tuple((variable, domain) for variable, domain in rule["types"])
        atoms, guards = (tuple(map(_formula_from_record, rule[key])) for key in ("atoms", "guards"))
        rules.append(Rule(rule["name"], _formula_from_record(rule["formula"]), atoms, guards, types, rule["weight"]))
    return Theory(*signature_from_record(record["signature"]), tuple(rules), source)


def signature_record(domains: Sequence[Domain], predicates: Sequence[Predicate]) -> dict[str, Any]:
    """Domains and predicates; every domain is written once, parts before what they are parts of, and then numbered."""
    numbers: dict[Domain, int] = {}
    written: list[list[Any]] = []

    def number(domain: Domain) -> int:
        if domain not in numbers:
            written.append([domain.name, domain.listed, [number(part) for part in domain.parts]])
            numbers[domain] = len(numbers)
        return numbers[domain]

    declared = [number(domain) for domain in domains]
    records = [
        {
            "name": predicate.name,
            "domains": [number(domain) for domain in predicate.domains],
            "closed": predicate.closed,
            "closed_parts": [[number(domain) for domain in part] for part in predicate.closed_parts],
            "reciprocal_of": predicate.reciprocal_of,
        }
        for predicate in predicates
    ]
    return {"written": written, "domains": declared, "predicates": records}


def signature_from_record(record: dict[str, Any]) -> tuple[tuple[Domain, ...], tuple[Predicate, ...]]:
    """The domains and predicates of a record."""
    made: list[Domain] = []
    for name, listed, parts in record["written"]:
        made.append(Domain(name, None if listed is None else tuple(listed), tuple(made[i] for i in parts)))
    predicates = []
    for each in record["predicates"]:
        domains = tuple(made[i] for i in each["domains"])
        closed_parts = tuple(tuple(made[i] for i in part) for part in each["closed_parts"])
        predicates.append(Predicate(each["name"], domains, each["closed"], closed_parts, each["reciprocal_of"]))
    return tuple(made[i] for i in record["domains"]), tuple(predicates)


def _formula_record(formula: Formula | None) -> list[Any] | None:
    match formula:
        case None:
            return None
        case Atom():
            return ["atom", formula.predicate, [_term_record(term) for term in formula.terms]]
        case Unequal():
            return ["unequal", _term_record(formula.left), _term_record(formula.right)]
        case _:
            return [_NAMES[type(formula)], *map(_formula_record, formula.operands())]


def _formula_from_record(record: list[Any] | None) -> Any:
    match record:
        case None:
            return None
        case ["atom", predicate, terms]:
            return Atom(predicate, tuple(map(_term_from_record, terms)))
        case ["unequal", left, right]:
            return Unequal(_term_from_record(left), _term_from_record(right))
        case ["and" | "or" as kind, *rest]:
            return _CONNECTIVES[kind](tuple(map(_formula_from_record, rest)))
        case [kind, *rest]:
            return _CONNECTIVES[kind](*map(_formula_from_record, rest))
    raise ValueError("no formula")


def _term_record(term: Term) -> str | list[str]:
    return term.name if isinstance(term, Variable) else [term.name]


def _term_from_record(record: str | list[str]) -> Term:
    return Variable(record) if isinstance(record, str) else Constant(record[0])


FORMAT = 1
DOCUMENT = "document"
_DAMAGE = (SafetensorError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, R2NError)
WHAT_TO_DO = "copy the full run folder again from where it was made, or train again"


Part = tuple[Any, dict[str, np.ndarray]]
"""A part of a problem: what JSON holds of it, and its arrays by name."""


def problem_fingerprints(problem: Problem) -> dict[str, str]:
    """A digest for each part of a problem that the numbers of a run depend on, by the part's name."""
    found = {}
    for part, (record, arrays) in _parts(problem).items():
        digest = hashlib.sha256(_json(record))
        for name, array in arrays.items():
            digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        found[part] = digest.hexdigest()
    return found


REMOVED_OPTIONS: dict[str, dict[str, Any]] = {
    "grounding": {"last_width": 0, "prune": True},
    "model": {"exclude_self": False, "shared_layers": False, "shared_encoder": "first", "pair": "symmetric"},
}
"""Options that earlier versions had, by section, with their defaults: runs that have others cannot be read."""


def split_removed(options: Any) -> tuple[Any, dict[str, dict[str, Any]]]:
    """The options of a stored run without those that are removed, and the removed ones."""
    removed, kept = dict[str, dict[str, Any]](), dict(options) if isinstance(options, dict) else options
    for name, gone in REMOVED_OPTIONS.items():
        section = kept.get(name) if isinstance(kept, dict) else None
        if isinstance(section, dict) and gone.keys() & section.keys():
            removed[name] = {key: value for key, value in section.items() if key in gone}
            kept[name] = {key: value for key, value in section.items() if key not in gone}
    return kept, removed


def problem_bytes(problem: Problem) -> bytes:
    """The problem as the content of a file; equal problems have equal bytes."""
    parts, report = _parts(problem), {item.name: getattr(problem.report, item.name) for item in fields(LoadReport)}
    report["rejected"] = [
        [error.what, None if error.where is None else asdict(error.where), error.hint]
        for error in problem.report.rejected
    ]
    document = {
        "format": FORMAT,
        "name": problem.name,
        "source": problem.source,
        "theory_source": problem.knowledge.theory.source,
        "ignored": [part.ignored for part in problem.knowledge.features.values()],
        "options": problem.options.model_dump(mode="json"),
        "report": report,
        "columns": {name: list(columns) for name, columns in problem.columns.items()},
        "parts": {name: record for name, (record, _) in parts.items()},
    }
    arrays = {f"{name}.{key}": array for name, (_, own) in parts.items() for key, array in own.items()}
    arrays[DOCUMENT] = np.frombuffer(_json(document), np.uint8)
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def problem_from_bytes(content: bytes, where: Path) -> Problem:
    """The problem that `problem_bytes` wrote into the file `where`; anything else is refused."""
    try:
        arrays = load(content)
        document = json.loads(arrays.pop(DOCUMENT).tobytes())
        found = document["format"]
    except _DAMAGE as error:
        raise CheckpointError(f"{where} is damaged, or holds no problem of r2n", hint=WHAT_TO_DO) from error
    if found != FORMAT:
        what = f"{where} has format {found}, this r2n reads format {FORMAT}"
        raise CheckpointError(what, hint="use the r2n that wrote it, or train again")
    try:
        return _problem(document, arrays)
    except _DAMAGE as error:
        raise CheckpointError(f"the problem in {where} is damaged", hint=WHAT_TO_DO) from error


def _json(record: Any) -> bytes:
    return json.dumps(record, separators=(",", ":"), default=index).encode()  # index: the integers of NumPy


def _parts(problem: Problem) -> dict[str, Part]:
    """The parts of a problem; of tables of candidates only the atoms, and no counts that change no number."""
    knowledge, theory, language = problem.knowledge, problem.knowledge.theory, problem.knowledge.language
    is_declared = (language.domains, language.predicates) == (theory.domains, theory.predicates)
    signature = None if is_declared else signature_record(language.domains, language.predicates)
    feature_records, features, queries = [], dict[str, np.ndarray](), dict[str, np.ndarray]()
    for i, (name, part) in enumerate(knowledge.features.items()):
        labels = [] if part.labels is None else [part.labels]
        feature_records.append([name, language.domains.index(part.domain), part.texts, *labels])
        features[f"{i}.constants"] = part.constants
        if part.vectors is not None:
            features[f"{i}.vectors"] = part.vectors
    for i, asked in enumerate(problem.queries.values()):
        queries |= {f"{i}.atoms": asked.atoms, f"{i}.truth": asked.truth}
    found, sources = knowledge.candidates, problem.candidates
    source_records = [[name, s.options.shared_words, s.options.rarer_than, s.labelled] for name, s in sources.items()]
    candidates = {f"found.{i}": codes for i, codes in enumerate(found.values())}
    candidates |= {f"given.{i}": source.given for i, source in enumerate(sources.values())}
    return {
        "theory": (theory_record(theory), {}),
        "language": (
            {"signature": signature, "constants": language.constants},
            {str(i): extension for i, extension in enumerate(language.extensions)},
        ),
        "evidence": (None, {"atoms": knowledge.evidence.atoms, "truth": knowledge.evidence.truth}),
        "features": (feature_records, features),
        "candidates": ({"found": list(found), "sources": source_records}, candidates),
        "queries": (list(problem.queries), queries),
    }


def _problem(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Problem:
    """The problem of a document and of arrays named `PART.NAME`; what does not fit is an error of some kind."""
    records, report = document["parts"], document["report"]
    theory = theory_from_record(records["theory"], document["theory_source"])
    signature = records["language"]["signature"]
    domains, predicates = (theory.domains, theory.predicates) if signature is None else signature_from_record(signature)
    extensions = tuple(arrays[f"language.{i}"] for i in range(len(domains)))
    language = Language(domains, predicates, tuple(records["language"]["constants"]), extensions)
    features = {
        name: Features(
            domains[domain],
            arrays[f"features.{i}.constants"],
            None if texts is None else tuple(texts),
            arrays.get(f"features.{i}.vectors"),
            document["ignored"][i],
            tuple(labels[0]) if labels else None,
        )
        for i, (name, domain, texts, *labels) in enumerate(records["features"])
    }
    candidates = records["candidates"]
    sources = {
        name: CandidateSource(Candidates((), shared_words, rarer_than), arrays[f"candidates.given.{i}"], labelled)
        for i, (name, shared_words, rarer_than, labelled) in enumerate(candidates["sources"])
    }
    counted, notes = ("facts", "duplicates", "unused_features", "empty"), ("notes", "warnings")
    read: dict[str, Any] = {key: tuple((name, count) for name, count in report.get(key, ())) for key in counted}
    read |= {key: tuple(report.get(key, ())) for key in notes}
    rejected = tuple(
        DataError(what, where=None if where is None else Location(**where), hint=hint)
        for what, where, hint in report["rejected"]
    )
    return Problem(
        document["name"],
        KnowledgeBase(
            theory,
            language,
            Evidence(arrays["evidence.atoms"], arrays["evidence.truth"]),
            features,
            {name: arrays[f"candidates.found.{i}"] for i, name in enumerate(candidates["found"])},
        ),
        {
            name: Evidence(arrays[f"queries.{i}.atoms"], arrays[f"queries.{i}.truth"])
            for i, name in enumerate(records["queries"])
        },
        LoadReport(rejected=rejected, **read),
        Options.model_validate_json(json.dumps(split_removed(document["options"])[0])),
        document["source"],
        sources,
        {name: tuple(map(str, columns)) for name, columns in document.get("columns", {}).items()},
    )
