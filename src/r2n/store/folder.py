"""A model as a folder: complete in itself, with its problem, and one checksum of all that its numbers depend on."""

import hashlib
import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import pydantic.dataclasses
from pydantic import ConfigDict, TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from r2n.data.candidates import Candidates, CandidateSource
from r2n.data.features import Features
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.data.problem import LoadReport, Problem
from r2n.errors import CheckpointError, ConfigError, DataError, Location, R2NError, refusing
from r2n.files import read_file, write_atomically
from r2n.logic.formula import And, Atom, Constant, Formula, Iff, Implies, Not, Or, Term, Unequal, Variable, Xor
from r2n.logic.language import Domain, Language, Predicate
from r2n.logic.theory import Rule, Theory
from r2n.options import Options

FORMAT = 2
CONFIG, PROBLEM, TRACE, REPORT = "config.json", "problem.safetensors", "trace.jsonl", "report.json"
CALIBRATION = "calibration.json"
LONGEST_NAME = 60
_NO_NUMBER_DEPENDS_ON = ("sha256", "versions")


class _File:
    """A file of a run folder, by its name there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: "RunFolder", owner: type | None = None) -> Path:
        return folder.path / self.name


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, and where its files are."""

    path: Path
    config = _File(CONFIG)  # how the run was made
    problem = _File(PROBLEM)  # with everything that was read for it
    trace = _File(TRACE)  # one line an epoch; each network of an ensemble has its own: `networks`
    report = _File(REPORT)  # how good it is
    calibration = _File(CALIBRATION)  # how its logits become probabilities

    @property
    def without_reasoning(self) -> "RunFolder":
        """A run with the same input layer and no rules, to compare with; not there until it is trained to its end."""
        return RunFolder(self.path / "without-reasoning")

    @property
    def traces(self) -> tuple[Path, ...]:
        """The trace of each network that has begun."""
        found = sorted(self.path.glob(f"seed-*/{TRACE}"), key=lambda path: (len(path.parent.name), path))
        return (self.trace,) if self.trace.exists() else tuple(found)

    def networks(self, seeds: range) -> "tuple[RunFolder, ...]":
        """Where each network has its trace and its checkpoint: here, or in a folder for each of an ensemble."""
        return (self,) if len(seeds) == 1 else tuple(RunFolder(self.path / f"seed-{seed}") for seed in seeds)


@pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class RunConfig:
    """All that distinguishes a run from another, as `config.json` holds it.

    `name` and `source` are the problem's; `encoders` are the domains whose features go through modules of the caller.
    `fingerprints` has a digest for each part of the problem, so that a difference can be named. `seed` is that of the
    first of `ensemble` networks.
    """

    name: str
    source: str | None
    options: Options
    seed: int
    encoders: tuple[str, ...]
    device: str
    threads: int
    versions: Mapping[str, str]
    problem_sha256: str
    fingerprints: Mapping[str, str]
    ensemble: int = 1

    @property
    def seeds(self) -> range:
        """The seed of each network."""
        return range(self.seed, self.seed + self.ensemble)

    @property
    def digest(self) -> str:
        """The one checksum over all that the numbers of the run depend on."""
        return digest(_document(self))


def usual_folder(name: str, seed: int) -> Path:
    """Where a run goes if nobody says: runs/NAME-SEED, the name without what a path or a file system may not have."""
    plain = re.sub(r"[^\w.-]+", "_", name)[:LONGEST_NAME].strip(".") or "run"
    return Path("runs") / f"{plain}-{seed}"


def config_of(
    problem: Problem, options: Options, seed: int, threads: int, encoders: tuple[str, ...], device: str, ensemble: int
) -> RunConfig:
    """The configuration of a run of this process on a problem."""
    return RunConfig(
        problem.name,
        problem.source,
        options,
        seed,
        encoders,
        device,
        threads,
        {"r2n": version("r2n"), "torch": version("torch"), "python": platform.python_version()},
        hashlib.sha256(problem_bytes(problem)).hexdigest(),
        problem_fingerprints(problem),
        ensemble,
    )


def write_run(folder: RunFolder, problem: Problem, config: RunConfig) -> None:
    """Begin a run folder: the problem, and then the configuration, by which the folder holds a run."""
    document = _document(config)
    document["sha256"] = digest(document)
    for path, content in (
        (folder.problem, problem_bytes(problem)),
        (folder.config, json.dumps(document, indent=1).encode()),
    ):
        with refusing(f"{str(path)!r} cannot be written", "give another --out"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)


def _document(config: RunConfig) -> dict[str, Any]:
    """The configuration as JSON holds it; a run of one network says nothing of others."""
    document = {"format": FORMAT, **asdict(config), "options": config.options.model_dump(mode="json")}
    if config.ensemble == 1:
        del document["ensemble"]
    return document


def digest(document: Mapping[str, Any]) -> str:
    """Of the document as JSON in one form, without the keys that no number depends on."""
    kept = {key: value for key, value in document.items() if key not in _NO_NUMBER_DEPENDS_ON}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_config(folder: RunFolder) -> RunConfig:
    """The configuration of the run in a folder, as it was when the run began."""
    path, again = folder.config, "train again in another folder"
    try:
        document = json.loads(read_file(path))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(f"{folder.path} holds no run", hint="a run is made by: r2n train P --out DIR") from error
    except OSError as error:
        hint = "see to its permissions" if isinstance(error, PermissionError) else WHAT_TO_DO
        raise CheckpointError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        if "\0" in str(path):  # no system takes it
            raise ConfigError(f"{str(folder.path)!r} is no folder: {error}") from error
        raise CheckpointError(f"{path} is damaged: it is no JSON", hint=WHAT_TO_DO) from error
    if not isinstance(document, dict):
        raise CheckpointError(f"{path} is damaged: it holds no configuration", hint=WHAT_TO_DO)
    found = document.get("format")
    if found in (None, 1):
        raise CheckpointError(f"the run in {folder.path} was made by an earlier version of r2n", hint=again)
    if found != FORMAT:
        what = f"{path} has format {found!r}, this r2n reads format {FORMAT}"
        raise CheckpointError(what, hint=f"use the r2n that made the run, or {again}")
    if document.get("sha256") != digest(document):
        what = f"{path} was changed after the run began: its checksum is wrong"
        raise CheckpointError(what, hint=f"undo the change, or {again}")
    values = {key: value for key, value in document.items() if key not in ("format", "sha256")}
    try:
        return TypeAdapter(RunConfig).validate_json(json.dumps(values))
    except ValidationError as error:
        first = error.errors()[0]
        what = f"'{'.'.join(map(str, first['loc']))}': {first['msg'][0].lower()}{first['msg'][1:]}"
        hint = "use that one, or train again"
        raise CheckpointError(f"{path} was written by another version of r2n: {what}", hint=hint) from error


def read_problem(folder: RunFolder, config: RunConfig) -> Problem:
    """The problem of the run in a folder, checked against its configuration."""
    return problem_from_bytes(checked_problem(folder, config), folder.problem)


def checked_problem(folder: RunFolder, config: RunConfig) -> bytes:
    """The file of the problem; refused if it is not the one that the configuration names."""
    try:
        content = read_file(folder.problem)
    except OSError as error:
        what = f"the run folder {folder.path} is incomplete: {PROBLEM} cannot be read: {error.strerror}"
        raise CheckpointError(what, hint=WHAT_TO_DO) from error
    if hashlib.sha256(content).hexdigest() != config.problem_sha256:
        what = f"{folder.problem} is damaged, or was changed after the run began: its checksum is wrong"
        raise CheckpointError(what, hint=WHAT_TO_DO)
    return content


def flat_options(options: Options) -> dict[str, Any]:
    """Each option by its key (`model.dim`), as JSON has it."""
    sections = options.model_dump(mode="json")
    return {f"{section}.{name}": value for section, part in sections.items() for name, value in part.items()}


def differences(kept: RunConfig, now: RunConfig) -> list[str]:
    """What a result depends on and is not as it was, each by its name; versions and the source are left out."""
    parts = {**kept.fingerprints, **now.fingerprints}
    found = [f"the {part}" for part in parts if kept.fingerprints.get(part) != now.fingerprints.get(part)]
    before, after = (
        {f"options.{key}": value for key, value in flat_options(config.options).items()}
        | {key: getattr(config, key) for key in ("seed", "ensemble", "encoders", "device", "threads")}
        for config in (kept, now)
    )
    return found + [
        f"{key}: {_shown(before.get(key))}, now {_shown(after.get(key))}"
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]


def _shown(value: Any) -> str:
    return "none" if value is None or value == () else json.dumps(value)


# the problem as a file

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
            **({"functional": True} if predicate.functional else {}),  # a file without it says: not functional
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
        others = each["reciprocal_of"], each.get("functional", False)
        predicates.append(Predicate(each["name"], domains, each["closed"], closed_parts, *others))
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


PROBLEM_FORMAT = 1
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


def problem_bytes(problem: Problem) -> bytes:
    """The problem as the content of a file; equal problems have equal bytes."""
    parts, report = _parts(problem), {item.name: getattr(problem.report, item.name) for item in fields(LoadReport)}
    report["rejected"] = [
        [error.what, None if error.where is None else asdict(error.where), error.hint]
        for error in problem.report.rejected
    ]
    document = {
        "format": PROBLEM_FORMAT,
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
    if found != PROBLEM_FORMAT:
        what = f"{where} has format {found}, this r2n reads format {PROBLEM_FORMAT}"
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
        read = [] if part.analyzer == "word" else [part.analyzer]
        labels = [part.labels] if part.labels is not None or read else []
        feature_records.append([name, language.domains.index(part.domain), part.texts, *labels, *read])
        features[f"{i}.constants"] = part.constants
        if part.vectors is not None:
            features[f"{i}.vectors"] = part.vectors
    for i, asked in enumerate(problem.queries.values()):
        queries |= {f"{i}.atoms": asked.atoms, f"{i}.truth": asked.truth}
    found, sources = knowledge.candidates, problem.candidates
    source_records = [[name, s.options.shared_words, s.options.rarer_than, s.labelled] for name, s in sources.items()]
    candidates = {f"found.{i}": codes for i, codes in enumerate(found.values())}
    candidates |= {f"given.{i}": source.given for i, source in enumerate(sources.values())}
    ask = {"ask": ({name: list(positions) for name, positions in problem.ask.items()}, {})} if problem.ask else {}
    return ask | {
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
            tuple(more[0]) if more and more[0] is not None else None,
            more[1] if len(more) > 1 else "word",
        )
        for i, (name, domain, texts, *more) in enumerate(records["features"])
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
        Options.model_validate_json(json.dumps(document["options"])),
        document["source"],
        sources,
        {name: tuple(map(str, columns)) for name, columns in document.get("columns", {}).items()},
        {name: tuple(map(int, positions)) for name, positions in records.get("ask", {}).items()},
    )
