"""The two protocols equal plain loops over names, on typed predicates of any arity with many ties."""

import json
from dataclasses import dataclass
from itertools import product
from math import exp, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence
from r2n.evaluation.ranking import BYTES_BY_CODE, BYTES_IN_A_ROW, EvaluationOptions, Filter, rank
from r2n.evaluation.report import classify
from r2n.logic.language import Domain, Language, Predicate
from tests.examples import at_most
from tests.oracles import metrics as oracle
from tests.oracles.metrics import GroundAtom


@dataclass(frozen=True)
class Asked:
    """Constants of each domain, predicates over domains, a score for each atom, queries true and false, known facts."""

    members: dict[str, list[str]]
    signatures: dict[str, tuple[str, ...]]
    scores: dict[GroundAtom, float]
    true: list[GroundAtom]
    false: list[GroundAtom]
    known: list[GroundAtom]

    def base(self) -> HerbrandBase:
        parts = {name: Domain(name) for name in self.members if name != "both"}
        domains = parts | {"both": Domain("both", parts=tuple(parts.values()))}
        predicates = [Predicate(name, tuple(map(domains.__getitem__, own))) for name, own in self.signatures.items()]
        brought = {name: self.members[name] for name in parts}
        return HerbrandBase(Language.build(domains.values(), predicates, brought))


@st.composite
def asked_models(draw: DrawFn) -> Asked:
    """Arities 1 to 3; typed, overlapping, single and empty domains and their union; many ties."""
    some = st.lists(st.sampled_from("abcde"), max_size=4, unique=True).map(sorted)
    members = {"d0": draw(some), "d1": draw(some)}
    members["both"] = sorted({*members["d0"], *members["d1"]})
    over = st.lists(st.sampled_from(("d0", "d1", "both")), min_size=1, max_size=3).map(tuple)
    signatures: dict[str, tuple[str, ...]] = {f"p{i}": draw(over) for i in range(draw(st.integers(1, 3)))}
    atoms = [
        (name, *constants) for name, own in signatures.items() for constants in product(*(members[d] for d in own))
    ]
    random = draw(st.randoms(use_true_random=False))
    levels, share = draw(st.integers(1, 4)), draw(st.sampled_from((0.1, 0.4, 0.8)))
    scores = {atom: float(random.randrange(levels) - 1) for atom in atoms}
    asked = [atom for atom in atoms if random.random() < share]
    true = [atom for atom in asked if random.random() < 0.7]
    known = [atom for atom in atoms if random.random() < share and (atom not in asked or atom in true)]
    return Asked(members, signatures, scores, true, [atom for atom in asked if atom not in true], known)


def codes_of(base: HerbrandBase, atoms: list[GroundAtom]) -> np.ndarray:
    """The codes of named atoms, one call each."""
    codes = []
    for name, *constants in atoms:
        ids = np.array([[base.language.constant_id(constant) for constant in constants]], np.int64)
        codes.append(int(base.encode(base.language.predicate(name), ids)[0]))
    return np.array(codes, np.int64)


def posed(asked: Asked) -> tuple[HerbrandBase, Evidence, np.ndarray]:
    """The base, the queries, and the logit of each code."""
    base = asked.base()
    true, false = codes_of(base, asked.true), codes_of(base, asked.false)
    codes = np.sort(np.concatenate([true, false]))
    logits = np.zeros(base.size)
    logits[codes_of(base, list(asked.scores))] = list(asked.scores.values())
    return base, Evidence(codes, np.isin(codes, true)), logits


@given(asked_models(), st.sampled_from((1, 2, 5, 1000)))
def test_rankings_equal_loops_over_names(asked: Asked, atoms_at_once: int) -> None:
    base, queries, logits = posed(asked)
    known = codes_of(base, asked.known)
    report = rank(
        logits.__getitem__, queries, base, Filter(known, ()), EvaluationOptions(memory=atoms_at_once * BYTES_BY_CODE)
    )
    expected = oracle.ranks_of_queries(asked.signatures, asked.members, asked.scores, asked.true, set(asked.known))
    assert set(report.per_predicate) == set(expected)
    for name, found in expected.items():
        wanted = {"ranks": len(found)} | oracle.ranking_metrics([realistic for _, _, realistic in found])
        assert report.per_predicate[name] == pytest.approx(wanted, abs=1e-12)
    pooled = [each for found in expected.values() for each in found]
    assert (report.protocol["queries"], report.protocol["ranks"]) == (len(asked.true), len(pooled))
    if pooled:
        for i, kind in enumerate(("optimistic", "pessimistic")):
            assert report.ties[kind] == pytest.approx(oracle.ranking_metrics([each[i] for each in pooled]), abs=1e-12)
        assert report.metrics == pytest.approx(oracle.ranking_metrics([each[2] for each in pooled]), abs=1e-12)


class ByRow:
    """The same scores, offered by the row; asked for atoms, it refuses."""

    def __init__(self, base: HerbrandBase, logits: np.ndarray) -> None:
        self.base, self.logits = base, logits

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        raise AssertionError("codes were written out")

    def rows(self, predicate: int, position: int, given: np.ndarray) -> np.ndarray:
        own = self.base.language.predicates[predicate]
        found = []
        for constants in given.tolist():
            members = self.base.language.members(own.domains[position])
            atoms = [[*constants[:position], c, *constants[position + 1 :]] for c in members]
            codes = self.base.encode(own, np.array(atoms, np.int64))
            found.append(self.logits[codes])
        return np.array(found, np.float32)


@at_most(60, "the same worlds are drawn three times already")
@given(asked_models(), st.sampled_from((1, 5, 1000)))
def test_scores_by_the_row_give_the_same_report_as_scores_of_atoms(asked: Asked, at_once: int) -> None:
    base, queries, logits = posed(asked)
    known = Filter(codes_of(base, asked.known), ())
    by_row = rank(ByRow(base, logits), queries, base, known, EvaluationOptions(memory=at_once * BYTES_IN_A_ROW))
    by_code = rank(logits.__getitem__, queries, base, known)
    assert json.dumps(by_row.to_dict()) == json.dumps(by_code.to_dict())


@at_most(60, "the same worlds are drawn three times already")
@given(asked_models())
def test_forbidden_candidates_rank_as_if_they_scored_below_all(asked: Asked) -> None:
    """The scores are above -2, so that -9 for some of the atoms is what forbidding them means."""
    base, queries, logits = posed(asked)
    known, lowered = Filter(codes_of(base, asked.known), ()), logits.copy()
    bad = np.arange(base.size) % 3 == 1
    lowered[bad] = -9

    def forbidden(predicate: int, position: int, given: np.ndarray) -> np.ndarray:
        return ByRow(base, bad.astype(float)).rows(predicate, position, given) > 0

    found = rank(logits.__getitem__, queries, base, known, EvaluationOptions(forbidden=forbidden))
    expected = rank(lowered.__getitem__, queries, base, known)
    for mine, other in (
        (found.metrics, expected.metrics),
        *((found.ties[kind], expected.ties[kind]) for kind in found.ties),
    ):
        assert mine == pytest.approx(other, nan_ok=True)
    assert "forbidden" in found.protocol
    assert "forbidden" not in expected.protocol


@given(asked_models())
def test_classification_equals_loops_over_names(asked: Asked) -> None:
    assume(asked.true or asked.false)
    base, queries, logits = posed(asked)
    report = classify(logits.__getitem__, queries, base)
    named = [*asked.true, *asked.false]
    scores, truth = [asked.scores[atom] for atom in named], [atom in asked.true for atom in named]
    aucs = oracle.roc_auc_by_group(scores, truth, [(name, last if rest else "") for name, *rest, last in named])
    macro = oracle.macro(aucs)
    brier, ece, _ = oracle.calibration([1 / (1 + exp(-score)) for score in scores], truth, 10)
    expected = {
        "ap": oracle.average_precision(scores, truth) if any(truth) else nan,
        "roc_auc_macro": nan if macro is None else macro,
        "accuracy": sum((score > 0) == yes for score, yes in zip(scores, truth, strict=True)) / len(truth),
        "brier": brier,
        "ece": ece,
    }
    assert report.metrics == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert report.protocol["groups"] == len(aucs)
    assert report.protocol["groups_of_one_class_left_out"] == aucs.count(None)
    assert sum(part["queries"] for part in report.per_predicate.values()) == len(named)
