"""Metrics equal plain loops on random scores with many ties, and filtered rankings equal PyKEEN's evaluator."""

from collections.abc import Callable
from math import inf, nan
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from sklearn.metrics import average_precision_score, roc_auc_score

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence
from r2n.evaluation import metrics
from r2n.evaluation.ranking import BYTES_BY_CODE, EvaluationOptions, Filter, rank
from r2n.evaluation.report import Report
from r2n.logic.language import Domain, Language, Predicate
from tests.examples import at_most
from tests.oracles import metrics as oracle

LEVELS = st.sampled_from((-inf, -700.0, -2.0, -1e-300, 0.0, 1e-300, 0.5, 0.5000000000000001, 0.5000008, 40.0, inf))
NEARLY_EQUAL = st.integers(-40, 40).map(lambda step: 3 + 5e-7 * step) | st.sampled_from((-inf, -1.0, inf))
MODEST = st.integers(-5, 5).map(float)
INCREASING: list[Callable[[np.ndarray], np.ndarray]] = [
    lambda x: x / 7 - 3,
    lambda x: x**3,
    np.exp,
    np.arctan,
    lambda x: 1 / (1 + np.exp(-x)),
    lambda x: np.where(x > 0, x + 1e5, x),
]


@st.composite
def candidate_rows(draw: DrawFn, levels=LEVELS, most: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, the true candidate of each row, and which candidates are allowed (the true one too, or not)."""
    rows, candidates = draw(st.integers(0, 4)), draw(st.integers(1, most))
    size = rows * candidates
    scores = np.array(draw(st.lists(levels, min_size=size, max_size=size)), np.float64).reshape(rows, candidates)
    allowed = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool).reshape(rows, candidates)
    true = draw(st.lists(st.integers(0, candidates - 1), min_size=rows, max_size=rows))
    return scores, np.array(true, np.int64), allowed


@st.composite
def labelled(draw: DrawFn, values=LEVELS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, truths and groups of some atoms."""
    rows = draw(st.lists(st.tuples(values, st.booleans(), st.integers(-2, 3)), min_size=1, max_size=25))
    scores, truth, groups = zip(*rows, strict=True)
    return np.array(scores, np.float64), np.array(truth, bool), np.array(groups, np.int64) * 10**9


def ranks(scores: np.ndarray, true: np.ndarray, allowed: np.ndarray | None = None) -> metrics.Ranks:
    """Each row asked once."""
    excluded = None if allowed is None else np.nonzero(~allowed)
    return metrics.ranks(scores.copy(), np.arange(len(true)), true, excluded=excluded)


@given(candidate_rows() | candidate_rows(levels=NEARLY_EQUAL))
def test_ranks_equal_plain_loops(drawn: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
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
def test_rows_with_several_queries_and_forbidden_candidates_equal_plain_loops(
    drawn: tuple[np.ndarray, np.ndarray, np.ndarray], random: Random
) -> None:
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


@at_most(60, "each ranks by loops")
@given(candidate_rows(levels=st.sampled_from((-inf, -700.0, -2.0, 0.0, 0.5, 40.0, inf)), most=5))
def test_ties_average(drawn: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    scores, true, allowed = drawn
    found = ranks(scores, true, allowed).realistic
    for rank_found, *row in zip(found, scores.tolist(), true.tolist(), allowed.tolist(), strict=True):
        assert rank_found == pytest.approx(oracle.shuffled_rank(*row), abs=1e-9)


@given(candidate_rows(levels=MODEST), st.sampled_from(INCREASING))
def test_any_increasing_transform_keeps_the_ranks(
    drawn: tuple[np.ndarray, np.ndarray, np.ndarray], transform: Callable[[np.ndarray], np.ndarray]
) -> None:
    scores, true, allowed = drawn
    before, after = ranks(scores, true, allowed), ranks(transform(scores), true, allowed)
    assert before.realistic.tolist() == after.realistic.tolist()
    assert metrics.ranking_metrics(before.realistic) == pytest.approx(
        metrics.ranking_metrics(after.realistic), abs=0, nan_ok=True
    )


@given(candidate_rows(levels=st.just(0.0)))
def test_a_model_that_knows_nothing_gets_the_middle(drawn: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    scores, true, _ = drawn
    assert ranks(scores, true).realistic.tolist() == [(scores.shape[1] + 1) / 2] * len(true)


@given(labelled() | labelled(values=NEARLY_EQUAL))
def test_average_precision_and_roc_auc_equal_plain_loops(drawn: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
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
def test_finite_scores_give_the_numbers_of_scikit_learn(drawn: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    scores, truth, _ = drawn
    assume(truth.any() and not truth.all())
    assert metrics.average_precision(scores, truth) == pytest.approx(average_precision_score(truth, scores), abs=1e-12)
    one_group = np.zeros(len(scores), np.int64)
    assert metrics.roc_auc_macro(scores, truth, one_group) == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)


@given(labelled(values=st.sampled_from((0.0, 0.05, 0.1, 0.25, 0.3, 0.5, 0.7, 0.95, 1.0))), st.integers(1, 12))
def test_calibration_equals_plain_loops(drawn: tuple[np.ndarray, np.ndarray, np.ndarray], bins: int) -> None:
    probabilities, truth, _ = drawn
    brier, ece, expected = oracle.calibration(probabilities.tolist(), truth.tolist(), bins)
    found = metrics.calibration(probabilities, truth, bins)
    assert (found.brier, found.ece) == pytest.approx((brier, ece), abs=1e-12)
    assert len(found.bins) == bins
    assert [part.count for part in found.bins] == [0 if part is None else part[2] for part in expected]
    for part, wanted in zip(found.bins, expected, strict=True):
        numbers = wanted[:2] if wanted else (nan, nan)
        assert (part.confidence, part.accuracy) == pytest.approx(numbers, abs=1e-12, nan_ok=True)


# The judge: PyKEEN


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
    evaluator.evaluate(
        pykeen.lookup(scores),
        pykeen.tensor(asked),
        batch_size=16,
        use_tqdm=False,
        additional_filter_triples=pykeen.tensor(known),
    )
    # PyKEEN keeps realistic ranks, which are exact, in single precision, and would average them in it
    for parts in evaluator.ranks.values():
        parts[:] = [part.astype(np.float64) for part in parts]
    result = evaluator.finalize()
    return {
        (side, kind, ours): result.get_metric(f"{side}.{kind}.{theirs}")
        for side in ("head", "tail", "both")
        for kind in ("optimistic", "realistic", "pessimistic")
        for ours, theirs in names.items()
    }


def ours(scores: np.ndarray, asked: np.ndarray, known: np.ndarray) -> dict[tuple[str, str, str], float]:
    """The same by `rank`."""
    predicates, constants, _ = scores.shape
    domain = Domain("constant")
    language = Language.build(
        [domain],
        [Predicate(f"p{i:03}", (domain, domain)) for i in range(predicates)],
        {"constant": [f"c{i:03}" for i in range(constants)]},
    )

    def codes(triples: np.ndarray) -> np.ndarray:
        return np.unique((triples[:, 1] * constants + triples[:, 0]) * constants + triples[:, 2])

    atoms = codes(asked)
    queries = Evidence(atoms, np.ones(len(atoms), bool))
    found: dict[tuple[str, str, str], float] = {}
    for side, positions in (("head", (0,)), ("tail", (1,)), ("both", None)):
        report: Report = rank(
            scores.ravel().__getitem__,
            queries,
            HerbrandBase(language),
            Filter(codes(known), ()),
            EvaluationOptions(sides=positions, memory=64 * BYTES_BY_CODE),
        )
        kinds = {"realistic": report.metrics, **report.ties}
        found |= {(side, kind, name): value for kind, part in kinds.items() for name, value in part.items()}
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


@pytest.mark.slow
@at_most(40, "each ranks by loops")
@given(
    seed=st.integers(0, 2**32 - 1),
    constants=st.integers(2, 7),
    predicates=st.integers(1, 3),
    size=st.integers(1, 40),
    levels=st.integers(0, 4),
)
def test_rankings_equal_pykeen(pykeen: SimpleNamespace, **shape: int) -> None:
    case = random_case(**shape)
    assert ours(*case) == pytest.approx(judged(pykeen, *case), abs=1e-9, rel=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_larger_rankings_equal_pykeen(pykeen: SimpleNamespace, seed: int) -> None:
    case = random_case(seed, constants=60, predicates=5, size=2500, levels=12)
    found, expected = ours(*case), judged(pykeen, *case)
    assert found == pytest.approx(expected, abs=1e-9, rel=0)
    assert found["both", "optimistic", "mrr"] > found["both", "realistic", "mrr"] + 0.01  # there are ties to judge
