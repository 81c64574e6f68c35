"""Metrics and the two protocols equal plain loops with many ties, and filtered rankings equal PyKEEN's evaluator."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product, starmap
from math import exp, inf, nan
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence
from r2n.evaluation import metrics
from r2n.evaluation.ranking import BYTES_BY_CODE, BYTES_IN_A_ROW, EvaluationOptions, Filter, rank
from r2n.evaluation.report import classify
from r2n.logic.language import Domain, Language, Predicate
from tests import strategies
from tests.examples import at_most
from tests.oracles import metrics as oracle
from tests.oracles.metrics import GroundAtom

LEVELS = st.sampled_from((-inf, -700.0, -2.0, -1e-300, 0.0, 1e-300, 0.5, 0.5000000000000001, 0.5000008, 40.0, inf))
NEARLY_EQUAL = st.integers(-40, 40).map(lambda step: 3 + 5e-7 * step) | st.sampled_from((-inf, -1.0, inf))
MODEST = st.integers(-5, 5).map(float)
Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]
INCREASING: list[Callable[[np.ndarray], np.ndarray]] = [
    lambda x: x / 7 - 3,
    lambda x: x**3,
    np.exp,
    np.arctan,
    lambda x: 1 / (1 + np.exp(-x)),
    lambda x: np.where(x > 0, x + 1e5, x),
]


@st.composite
def candidate_rows(draw: DrawFn, levels=LEVELS, most: int = 8) -> Drawn:
    """Scores, the true candidate of each row, and which candidates are allowed (the true one too, or not)."""
    rows, candidates = draw(st.integers(0, 4)), draw(st.integers(1, most))
    size = rows * candidates
    scores = np.array(draw(st.lists(levels, min_size=size, max_size=size)), np.float64).reshape(rows, candidates)
    allowed = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool).reshape(rows, candidates)
    true = draw(st.lists(st.integers(0, candidates - 1), min_size=rows, max_size=rows))
    return scores, np.array(true, np.int64), allowed


@st.composite
def labelled(draw: DrawFn, values=LEVELS) -> Drawn:
    rows = draw(st.lists(st.tuples(values, st.booleans(), st.integers(-2, 3)), min_size=1, max_size=25))
    scores, truth, groups = zip(*rows, strict=True)
    return np.array(scores, np.float64), np.array(truth, bool), np.array(groups, np.int64) * 10**9


def ranks(scores: np.ndarray, true: np.ndarray, allowed: np.ndarray | None = None) -> metrics.Ranks:
    excluded = None if allowed is None else np.nonzero(~allowed)
    return metrics.ranks(scores.copy(), np.arange(len(true)), true, excluded=excluded)


@given(candidate_rows() | candidate_rows(levels=NEARLY_EQUAL))
def test_ranks_equal_plain_loops(drawn: Drawn) -> None:
    scores, true, allowed = drawn
    found = ranks(scores, true, allowed)
    expected = [oracle.ranks(*row) for row in zip(scores.tolist(), true.tolist(), allowed.tolist(), strict=True)]
    assert list(zip(found.optimistic, found.pessimistic, found.realistic, strict=True)) == expected
    everyone = ranks(scores, true)
    assert everyone.realistic.tolist() == ranks(scores, true, np.ones_like(allowed)).realistic.tolist()
    if expected:
        metric = metrics.ranking_metrics(found.realistic)
        assert metric == pytest.approx(oracle.ranking_metrics([realistic for _, _, realistic in expected]), abs=1e-12)


@given(candidate_rows(), st.randoms(use_true_random=False))
def test_rows_with_several_queries_and_forbidden_candidates_equal_plain_loops(drawn: Drawn, random: Random) -> None:
    scores, _, allowed = drawn
    forbidden = np.array([[random.random() < 0.3 for _ in row] for row in scores], bool).reshape(scores.shape)
    asked = [(i, random.randrange(scores.shape[1])) for i in range(len(scores)) for _ in range(random.randrange(4))]
    random.shuffle(asked)
    row, true = np.array(asked, np.int64).reshape(-1, 2).T
    expected = []
    for i, place in asked:
        others = [j for j in range(scores.shape[1]) if j != place and allowed[i, j]]
        last = sum(forbidden[i, others].tolist())
        better, equal = len(others) - last, last
        if not forbidden[i, place]:
            better, equal = oracle.better_and_equal(scores[i].tolist(), place, (allowed & ~forbidden)[i].tolist())
        expected.append((1 + better, 1 + better + equal, 1 + better + equal / 2))
    found = metrics.ranks(scores.copy(), row, true, excluded=np.nonzero(~allowed), forbidden=forbidden)
    assert list(zip(found.optimistic, found.pessimistic, found.realistic, strict=True)) == expected


@given(candidate_rows(levels=MODEST), st.sampled_from(INCREASING))
def test_any_increasing_transform_keeps_the_ranks(drawn: Drawn, transform: Callable[[np.ndarray], np.ndarray]) -> None:
    scores, true, allowed = drawn
    before, after = ranks(scores, true, allowed), ranks(transform(scores), true, allowed)
    assert before.realistic.tolist() == after.realistic.tolist()
    assert metrics.ranking_metrics(before.realistic) == pytest.approx(
        metrics.ranking_metrics(after.realistic), abs=0, nan_ok=True
    )


@given(labelled() | labelled(values=NEARLY_EQUAL))
def test_average_precision_and_roc_auc_equal_plain_loops(drawn: Drawn) -> None:
    scores, truth, groups = drawn
    levels = oracle.levels(scores.tolist())
    assert metrics.levels(scores).tolist() == levels
    found = metrics.average_precision(scores, truth)
    expected = oracle.average_precision(levels, truth.tolist()) if truth.any() else nan
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)
    per_group = oracle.roc_auc_by_group(levels, truth.tolist(), groups.tolist())
    as_numbers = [nan if auc is None else auc for auc in per_group]
    assert metrics.roc_auc_by_group(scores, truth, groups) == pytest.approx(as_numbers, abs=1e-12, nan_ok=True)
    macro = oracle.macro(per_group)
    wanted = nan if macro is None else macro
    assert metrics.roc_auc_macro(scores, truth, groups) == pytest.approx(wanted, abs=1e-12, nan_ok=True)


@given(labelled(values=st.integers(-6, 6).map(float)))
def test_finite_scores_give_the_numbers_of_scikit_learn(drawn: Drawn) -> None:
    scores, truth, _ = drawn
    assume(truth.any() and not truth.all())
    assert metrics.average_precision(scores, truth) == pytest.approx(average_precision_score(truth, scores), abs=1e-12)
    one_group = np.zeros(len(scores), np.int64)
    assert metrics.roc_auc_macro(scores, truth, one_group) == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)


@given(labelled(values=st.sampled_from((0.0, 0.05, 0.1, 0.25, 0.3, 0.5, 0.7, 0.95, 1.0))), st.integers(1, 12))
def test_calibration_equals_plain_loops(drawn: Drawn, bins: int) -> None:
    probabilities, truth, _ = drawn
    brier, ece, expected = oracle.calibration(probabilities.tolist(), truth.tolist(), bins)
    found = metrics.calibration(probabilities, truth, bins)
    assert (found.brier, found.ece) == pytest.approx((brier, ece), abs=1e-12)
    assert len(found.bins) == bins
    assert [part.count for part in found.bins] == [0 if part is None else part[2] for part in expected]
    for part, wanted in zip(found.bins, expected, strict=True):
        numbers = wanted[:2] if wanted else (nan, nan)
        assert (part.confidence, part.accuracy) == pytest.approx(numbers, abs=1e-12, nan_ok=True)


@pytest.fixture(scope="module")
def pykeen() -> SimpleNamespace:
    """PyKEEN's evaluator, and a model of it that looks its scores up in a table."""
    reason = "PyKEEN, the judge of rankings, is not installed: pip install 'r2n[judges]'"
    evaluation = pytest.importorskip("pykeen.evaluation", reason=reason)
    mocks, triples = pytest.importorskip("pykeen.models.mocks"), pytest.importorskip("pykeen.triples")
    import torch

    class Lookup(mocks.FixedModel):
        def __init__(self, scores: np.ndarray) -> None:
            info = triples.KGInfo(scores.shape[1], scores.shape[0], create_inverse_triples=False)
            super().__init__(triples_factory=info)
            self.scores = torch.from_numpy(scores)

        def _generate_fake_scores(self, h: Any, r: Any, t: Any) -> Any:
            return self.scores[r, h, t]

    return SimpleNamespace(evaluator=evaluation.RankBasedEvaluator, lookup=Lookup, tensor=torch.from_numpy)


def judged(
    pykeen: SimpleNamespace, scores: np.ndarray, asked: np.ndarray, known: np.ndarray
) -> dict[tuple[str, str, str], float]:
    """PyKEEN's numbers by side, kind of rank and metric; scores (predicate, first, second), triples (h, r, t)."""
    names = {"mrr": "inverse_harmonic_mean_rank"} | {f"hits@{k}": f"hits_at_{k}" for k in (1, 3, 10)}
    evaluator = pykeen.evaluator(filtered=True, clear_on_finalize=False)
    options = {"batch_size": 16, "use_tqdm": False, "additional_filter_triples": pykeen.tensor(known)}
    evaluator.evaluate(pykeen.lookup(scores), pykeen.tensor(asked), **options)
    # PyKEEN keeps realistic ranks, which are exact, in single precision, and would average them in it
    for parts in evaluator.ranks.values():
        parts[:] = [part.astype(np.float64) for part in parts]
    result = evaluator.finalize()
    return {
        (pattern, kind, ours): result.get_metric(f"{pattern}.{kind}.{theirs}")
        for pattern in ("head", "tail", "both")
        for kind in ("optimistic", "realistic", "pessimistic")
        for ours, theirs in names.items()
    }


def ours(scores: np.ndarray, asked: np.ndarray, known: np.ndarray) -> dict[tuple[str, str, str], float]:
    predicates, constants, _ = scores.shape
    domain = Domain("constant")
    names = [Predicate(f"p{i:03}", (domain, domain)) for i in range(predicates)]
    base = HerbrandBase(Language.build([domain], names, {"constant": [f"c{i:03}" for i in range(constants)]}))

    def codes(triples: np.ndarray) -> np.ndarray:
        return np.unique((triples[:, 1] * constants + triples[:, 0]) * constants + triples[:, 2])

    atoms = codes(asked)
    queries = Evidence(atoms, np.ones(len(atoms), bool))
    found: dict[tuple[str, str, str], float] = {}
    for pattern, positions in (("head", (0,)), ("tail", (1,)), ("both", None)):
        options = EvaluationOptions(positions=positions, memory=64 * BYTES_BY_CODE)
        report = rank(scores.ravel().__getitem__, queries, base, Filter(codes(known), ()), options)
        kinds = {"realistic": report.metrics, **report.ties}
        found |= {(pattern, kind, name): value for kind, part in kinds.items() for name, value in part.items()}
    return found


def random_case(seed: int, constants: int, predicates: int, size: int, levels: int) -> tuple[np.ndarray, ...]:
    """Scores with few levels, distinct triples asked, and known ones, some of them asked too."""
    random = np.random.default_rng(seed)
    scores = random.integers(-levels, 1, (predicates, constants, constants)) / 2
    shape = (constants, predicates, constants)
    drawn = random.permutation(np.prod(shape))[:size]
    triples = np.stack(np.unravel_index(drawn, shape), axis=1).astype(np.int64)
    asked = triples[: max(1, size // 3)]
    return scores, asked, triples[size // 4 :]


def leave_candidates(scores: np.ndarray, asked: np.ndarray, known: np.ndarray) -> bool:
    """Whether each rank has a rival: PyKEEN counts a rank without one as 1, and we leave it out."""
    filtered = np.unique(np.concatenate([asked, known]), axis=0)
    rows = [(query[fixed], filtered[:, fixed]) for query in asked for fixed in ([0, 1], [1, 2])]
    return all((own == others).all(1).sum() < scores.shape[1] for own, others in rows)


@pytest.mark.slow
@at_most(40, "each ranks by loops")
@given(st.tuples(st.integers(0, 2**32 - 1), *starmap(st.integers, [(2, 7), (1, 3), (1, 40), (0, 4)])))
def test_rankings_equal_pykeen(pykeen: SimpleNamespace, shape: tuple[int, int, int, int, int]) -> None:
    case = random_case(*shape)
    assume(leave_candidates(*case))
    assert ours(*case) == pytest.approx(judged(pykeen, *case), abs=1e-9, rel=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_larger_rankings_equal_pykeen(pykeen: SimpleNamespace, seed: int) -> None:
    case = random_case(seed, constants=60, predicates=5, size=2500, levels=12)
    found, expected = ours(*case), judged(pykeen, *case)
    assert found == pytest.approx(expected, abs=1e-9, rel=0)
    assert found["both", "optimistic", "mrr"] > found["both", "realistic", "mrr"] + 0.01  # there are ties to judge


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
    return strategies.codes_of(base, base.language, atoms)


def posed(asked: Asked) -> tuple[HerbrandBase, Evidence, np.ndarray]:
    """The base, the queries, and the logit of each code."""
    base = asked.base()
    true, false = codes_of(base, asked.true), codes_of(base, asked.false)
    codes = np.sort(np.concatenate([true, false]))
    logits = np.zeros(base.size)
    logits[codes_of(base, list(asked.scores))] = list(asked.scores.values())
    return base, Evidence(codes, np.isin(codes, true)), logits


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


@given(asked_models(), st.sampled_from((1, 2, 5, 1000)))
def test_rankings_by_code_and_by_row_equal_loops_over_names(asked: Asked, atoms_at_once: int) -> None:
    base, queries, logits = posed(asked)
    known = codes_of(base, asked.known)
    options = EvaluationOptions(memory=atoms_at_once * BYTES_BY_CODE)
    report = rank(logits.__getitem__, queries, base, Filter(known, ()), options)
    options = EvaluationOptions(memory=atoms_at_once * BYTES_IN_A_ROW)
    by_row = rank(ByRow(base, logits), queries, base, Filter(known, ()), options)
    assert json.dumps(by_row.to_dict()) == json.dumps(report.to_dict())
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


PAPERS, TOPICS = 6, 3
FUNCTIONAL = HerbrandBase(
    Language.build(
        [paper := Domain("paper"), topic := Domain("topic")],
        [Predicate("about", (paper, topic), functional=True), Predicate("cites", (paper, paper))],
        {"paper": [f"p{i}" for i in range(PAPERS)], "topic": [f"t{i}" for i in range(TOPICS)]},
    )
)
PAIRS = st.dictionaries(
    st.tuples(st.integers(0, PAPERS - 1), st.integers(0, TOPICS - 1)), st.tuples(MODEST, st.booleans()), min_size=1
)


@given(asked=PAIRS, is_mixed=st.booleans())
def test_the_surest_value_of_functional_predicates_equals_loops(
    asked: dict[tuple[int, int], tuple[float, bool]], *, is_mixed: bool
) -> None:
    codes = sorted(FUNCTIONAL.offsets[0] + TOPICS * i + j for i, j in asked)
    scores, truth = (np.array(column) for column in zip(*(asked[key] for key in sorted(asked)), strict=True))
    if is_mixed:  # queries of another predicate are no part of it
        codes += [int(FUNCTIONAL.offsets[1])]
        scores, truth = np.append(scores, 9.0), np.append(truth, True)
    queries = Evidence(np.array(codes, np.int64), truth.astype(bool))
    logits = dict(zip(codes, scores.tolist(), strict=True))
    report = classify(lambda atoms: np.array([logits[code] for code in atoms.tolist()]), queries, FUNCTIONAL)
    expected = oracle.surest_values([(f"p{i}", f"t{j}", *asked[i, j]) for i, j in sorted(asked)])
    for found in (report.metrics, report.per_predicate["about"]):
        assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-12, nan_ok=True)
        assert "accuracy" not in found
    assert report.metrics["pair_accuracy"] == pytest.approx(np.mean((scores > 0) == truth))
    if is_mixed:
        assert report.per_predicate["cites"]["accuracy"] == 1.0


def test_the_surest_value_is_what_scikit_learn_judges() -> None:
    dice = np.random.default_rng(0)
    logits, true = dice.normal(size=(60, 5)), dice.integers(4, size=60)
    truth, rows = (np.arange(5) == true[:, None]).ravel(), np.repeat(np.arange(60), 5)
    asked = logits.ravel(), truth, np.tile(np.arange(5), 60), rows
    surest = logits.argmax(1)
    assert metrics.class_accuracy(*asked) == pytest.approx(accuracy_score(true, surest))
    assert metrics.macro_f1(*asked) == pytest.approx(f1_score(true, surest, average="macro"))
