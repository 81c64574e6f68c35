"""Problems and theories in a file: whole again, or refused."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from safetensors.numpy import load, save

import r2n
from r2n.data.candidates import Candidates
from r2n.data.features import Features
from r2n.data.knowledge_base import Evidence, KnowledgeBase, with_reciprocals
from r2n.data.problem import LoadReport, Problem
from r2n.data.tables import Table
from r2n.errors import CheckpointError
from r2n.logic.language import Domain, Language, Predicate
from r2n.logic.parser import parse_horn_rules, parse_theory
from r2n.logic.theory import Theory
from r2n.store.folder import (
    DOCUMENT,
    problem_bytes,
    problem_fingerprints,
    problem_from_bytes,
    signature_from_record,
    signature_record,
    theory_from_record,
    theory_record,
)
from tests.candidate_problem import table, things_problem
from tests.featured_problem import featured_problem
from tests.same_records import assert_same

WHERE = Path("run") / "problem.safetensors"
NOTHING = LoadReport((), (), ())


def stored(problem: Problem) -> Problem:
    return problem_from_bytes(problem_bytes(problem), WHERE)


def assert_comes_back(problem: Problem) -> None:
    found = stored(problem)
    assert_same(found, problem)
    assert problem_fingerprints(found) == problem_fingerprints(problem)
    assert problem_bytes(found) == problem_bytes(problem)


@pytest.mark.parametrize("name", ["countries-s3", "umls"])
def test_embedded_datasets_come_back(name: str) -> None:
    problem = r2n.load(name)
    assert_comes_back(problem)
    assert_same(with_reciprocals(stored(problem).knowledge), with_reciprocals(problem.knowledge))


@pytest.mark.slow
def test_cora_comes_back() -> None:
    data = os.environ.get("R2N_DATA")
    if not data or not (Path(data) / "cora").is_dir():
        pytest.skip("R2N_DATA holds no Cora")
    assert_comes_back(r2n.load("cora-s1"))


def test_features_come_back() -> None:
    problem = featured_problem()
    assert {part.vectors is None for part in problem.knowledge.features.values()} == {False}
    assert_comes_back(problem)
    found = stored(problem).knowledge
    assert found.features["paper"].domain is found.language.domains[0]
    found.features["image"].vectors.setflags(write=True)  # type: ignore[union-attr]  # torch takes no other


@pytest.mark.parametrize(
    ("dtype", "shape"), [(np.float16, (1,)), (np.float32, (0,)), (np.float64, (2, 3)), (np.float32, (2, 1, 2))]
)
def test_vectors_of_any_shape_come_back_whatever_their_layout_in_memory(dtype: type, shape: tuple[int, ...]) -> None:
    problem = featured_problem()
    part = problem.knowledge.features["paper"]
    vectors = np.random.default_rng(0).normal(size=(*shape, len(part))).astype(dtype)
    turned = Features(part.domain, part.constants, None, np.moveaxis(vectors, -1, 0), ignored=3)
    features = {"paper": turned, "image": problem.knowledge.features["image"]}
    assert_comes_back(replace(problem, knowledge=replace(problem.knowledge, features=features)))


@pytest.mark.parametrize("asked_is_true", [False, True])
def test_candidates_come_back_without_the_tables_they_were_read_from(asked_is_true: bool) -> None:
    labels = {("red_car", "red_bus"): True, ("blue_car", "red_bus"): False}
    more = table({("tram", "old_tram"): True})
    problem = things_problem(labels, {("red_car", "blue_bus"): asked_is_true}, Candidates((more,), 1, 0.5))
    assert problem.candidates["same"].labelled != asked_is_true
    assert len(problem.candidates["same"].given) == 1
    assert_comes_back(problem)
    found = stored(problem).candidates["same"]
    assert found.options == Candidates((), 1, 0.5)
    assert_same(with_reciprocals(stored(problem).knowledge), with_reciprocals(problem.knowledge))


def test_odd_names_come_back() -> None:
    names = ["a b", "a\x00b", "two\nlines", '"', "\\", "Zoë", "日本", "🦊", "[/]", "x.y", "__metadata__", "document"]
    facts = [Table(pa.table({"a": names, "b": names[::-1]}), predicate="__metadata__")]
    facts += [Table(pa.table({f"c{i}": names[:2] for i in range(n)}), predicate=f"p{n}") for n in (1, 3, 6)]
    features = {"constant": dict.fromkeys(names, "text \u2028 🦊")}
    problem = Problem.build("n\x00\n🦊", Theory(), facts, {"odd.0 split": []}, features=features, source="\udcff")
    assert_comes_back(problem)


def test_a_language_of_its_own_comes_back() -> None:
    own = Language.build((Domain("d"),), (Predicate("p", (Domain("d"),)),), {"d": ("b", "a")})
    assert_comes_back(Problem("x", KnowledgeBase(Theory(), own, Evidence.empty()), {}, NOTHING))


def test_each_part_has_a_fingerprint_of_its_own(toy: Problem) -> None:
    knowledge, before = toy.knowledge, problem_fingerprints(toy)
    flipped = {name: Evidence(part.atoms, ~part.truth) for name, part in toy.queries.items()}
    featured = {"town": Features(knowledge.language.domains[0], np.arange(2), ("a", "b"))}
    changes = {
        "theory": replace(knowledge, theory=replace(knowledge.theory, rules=())),
        "language": replace(
            knowledge, language=replace(knowledge.language, constants=knowledge.language.constants[::-1])
        ),
        "evidence": replace(knowledge, evidence=Evidence(toy.train.atoms, ~toy.train.truth)),
        "features": replace(knowledge, features=featured),
        "candidates": replace(knowledge, candidates={"liesIn": np.arange(3)}),
    }
    problems = {part: replace(toy, knowledge=changed) for part, changed in changes.items()}
    problems["queries"] = replace(toy, queries=flipped)
    assert list(before) == list(problems)
    for part, changed in problems.items():
        after = problem_fingerprints(changed)
        assert [name for name in before if before[name] != after[name]] == [part]
    elsewhere = replace(
        toy, source="elsewhere", knowledge=replace(knowledge, theory=replace(knowledge.theory, source="x"))
    )
    assert problem_fingerprints(elsewhere) == before


def test_labels_that_change_places_change_the_fingerprint(toy: Problem) -> None:
    before = problem_fingerprints(toy)
    turned = {name: Evidence(part.atoms, np.roll(part.truth, 1)) for name, part in toy.queries.items()}
    assert any((part.truth != turned[name].truth).any() for name, part in toy.queries.items())
    after = problem_fingerprints(replace(toy, queries=turned))
    assert [name for name in before if before[name] != after[name]] == ["queries"]


def edited(problem: Problem, **changes: object) -> bytes:
    arrays = load(problem_bytes(problem))
    document = json.loads(arrays[DOCUMENT].tobytes()) | changes
    return save(arrays | {DOCUMENT: np.frombuffer(json.dumps(document).encode(), np.uint8)})


@pytest.mark.parametrize("content", [b"", b"{}", b"\x80\x04]", save({"a": np.zeros(2)}), save({DOCUMENT: np.zeros(9)})])
def test_what_holds_no_problem_is_refused(content: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"problem\.safetensors is damaged.*\n  copy the full run folder again"):
        problem_from_bytes(content, WHERE)


def test_another_format_is_refused(toy: Problem) -> None:
    with pytest.raises(CheckpointError, match="has format 99, this r2n reads format 1\n  use the r2n that wrote it"):
        problem_from_bytes(edited(toy, format=99), WHERE)


@pytest.mark.parametrize(
    "changes", [{"parts": {}}, {"parts": []}, {"options": {"model": 3}}, {"report": None}, {"parts": {"theory": 1}}]
)
def test_a_document_that_does_not_fit_is_refused(changes: dict[str, object], toy: Problem) -> None:
    with pytest.raises(CheckpointError, match=r"the problem in .*problem\.safetensors is damaged"):
        problem_from_bytes(edited(toy, **changes), WHERE)


RICH = """
domain town, "rule"
domain colour = {red, "light blue", "say \\"hi\\"", "two\\nlines"}
domain nothing = {}
domain place = town | "rule"
domain all = place | colour
predicate near(place, place) closed
predicate liesIn(all, place) closed(town, "rule") closed(colour, town)
predicate "->"(all)
predicate between(town, town, town)
rule weighted [0.1]: near(x: town, y) & !liesIn(x, "light blue") -> liesIn(y, x) | "->"(y), x != y, x != "Zoë"
rule any [-2e-7]: (near(x, y) <-> !(near(y, x) xor "->"(x))) & ("->"(y) | near(x, x))
rule alone: "->"("x")
implicit related: [between(x, y, z), between(x, x, y)], x != y
implicit star [3]: *(x: town, y)
"""


def stored_theory(theory: Theory) -> Theory:
    return theory_from_record(json.loads(json.dumps(theory_record(theory))), theory.source)


def test_a_theory_comes_back() -> None:
    theory = parse_theory(RICH, "somewhere.r2n")
    for each in (theory, theory.completed(theory.domains, theory.predicates)):
        found = stored_theory(each)
        assert str(found) == str(each)
        assert_same(found, each)


def test_what_a_theory_file_cannot_say_comes_back() -> None:
    horn = parse_horn_rules("p(x-1,y), q(y,new york) -> h(x-1,new york)")
    horn = replace(horn, rules=(replace(horn.rules[0], weight=-1e4),))
    assert_same(stored_theory(horn), horn)
    long = Domain("long", tuple(f"{i:060}" for i in range(20_000)))
    part = Domain("declared nowhere", ("a",))
    union = Domain("union", parts=(long, part))
    nullary = Predicate("it_rains", ())
    both = Predicate("both", (long, union), True, ((long, part),), reciprocal_of="it_rains")
    theory = Theory((union, long), (nullary, both))
    assert_same(stored_theory(theory), theory)


def test_each_domain_is_written_once_and_is_one_object_again() -> None:
    theory = parse_theory(RICH)
    record = signature_record(theory.domains, theory.predicates)
    assert len(record["written"]) == len(theory.domains)
    domains, predicates = signature_from_record(json.loads(json.dumps(record)))
    objects = {id(domain) for domain in domains}
    assert {id(domain) for predicate in predicates for domain in predicate.domains} <= objects
