"""Metrics by plain loops, each as its definition says it."""

from collections.abc import Sequence
from math import exp, isfinite, log, nan

GroundAtom = tuple[str, ...]


def margin(scores: list[float]) -> float:
    """By how much equal scores may differ: a millionth of the largest that is finite, or of 1."""
    return 1e-6 * max([1.0, *(abs(score) for score in scores if isfinite(score))])


def better_and_equal(scores: list[float], true: int, allowed: list[bool]) -> tuple[int, int]:
    """How many allowed candidates other than the true one are scored above it, and how many the same."""
    better = equal = 0
    least, most = scores[true] - margin(scores), scores[true] + margin(scores)
    for i, score in enumerate(scores):
        if i == true or not allowed[i]:
            continue
        better += score > most
        equal += least <= score <= most
    return better, equal


def levels(scores: list[float]) -> list[int]:
    """From the lowest score upwards: a level ends where a score is farther from its first one than equals may be."""
    found: dict[float, int] = {}
    level, first = -1, 0.0
    for score in sorted(set(scores)):
        if level < 0 or score > first + margin(scores):
            level, first = level + 1, score
        found[score] = level
    return [found[score] for score in scores]


def ranks(scores: list[float], true: int, allowed: list[bool]) -> tuple[float, float, float]:
    better, equal = better_and_equal(scores, true, allowed)
    return 1 + better, 1 + better + equal, 1 + better + equal / 2


def ranking_metrics(ranks: list[float]) -> dict[str, float]:
    found = {"mrr": sum(1 / rank for rank in ranks) / len(ranks)}
    for k in (1, 3, 10):
        found[f"hits@{k}"] = sum(1 for rank in ranks if rank <= k) / len(ranks)
    return found


def average_precision(scores: Sequence[float], truth: list[bool]) -> float:
    """Sum over thresholds, from high to low, of (gain in recall) times precision."""
    total, recall_before = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        taken = [is_true for score, is_true in zip(scores, truth, strict=True) if score >= threshold]
        recall = sum(taken) / sum(truth)
        total += (recall - recall_before) * sum(taken) / len(taken)
        recall_before = recall
    return total


def roc_auc(scores: Sequence[float], truth: list[bool]) -> float | None:
    """The share of pairs (true, false) in the right order, equals for a half; None without a pair."""
    right, pairs = 0.0, 0
    for i, is_true in enumerate(truth):
        for j, other_is_true in enumerate(truth):
            if is_true and not other_is_true:
                pairs += 1
                right += 1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0
    return right / pairs if pairs else None


def roc_auc_by_group(scores: Sequence[float], truth: list[bool], groups: list) -> list[float | None]:
    """ROC-AUC of each group, in order of the groups."""
    found = []
    for group in sorted(set(groups)):
        members = [i for i, own in enumerate(groups) if own == group]
        found.append(roc_auc([scores[i] for i in members], [truth[i] for i in members]))
    return found


def macro(per_group: list[float | None]) -> float | None:
    """The mean of what there is."""
    there = [auc for auc in per_group if auc is not None]
    return sum(there) / len(there) if there else None


def calibration(
    probabilities: list[float], truth: list[bool], bins: int
) -> tuple[float, float, list[tuple[float, float, int] | None]]:
    """Brier score, expected calibration error, and per bin mean probability, share of true atoms and count."""
    pairs = list(zip(probabilities, truth, strict=True))
    brier = sum((p - is_true) ** 2 for p, is_true in pairs) / len(pairs)
    found: list[tuple[float, float, int] | None] = []
    error = 0.0
    for b in range(bins):
        here = [(p, t) for p, t in pairs if b <= p * bins < b + 1 or (b == bins - 1 and p * bins >= bins)]
        if not here:
            found.append(None)
            continue
        confidence = sum(p for p, _ in here) / len(here)
        accuracy = sum(t for _, t in here) / len(here)
        found.append((confidence, accuracy, len(here)))
        error += len(here) / len(pairs) * abs(confidence - accuracy)
    return brier, error, found


def ranks_of_queries(
    signatures: dict[str, tuple[str, ...]],
    members: dict[str, list[str]],
    scores: dict[GroundAtom, float],
    true: list[GroundAtom],
    known: set[GroundAtom],
) -> dict[str, list[tuple[float, float, float]]]:
    """Per predicate, the ranks of each true query in each position that leaves a choice, filtered."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for predicate, *constants in true:
        for position, domain in enumerate(signatures[predicate]):
            candidates = members[domain]
            row = [(predicate, *constants[:position], c, *constants[position + 1 :]) for c in candidates]
            place = row.index((predicate, *constants))
            allowed = [atom not in known and atom not in true for atom in row]
            if not any(allowed):
                continue
            found.setdefault(predicate, []).append(ranks([scores[atom] for atom in row], place, allowed))
    return found


def surest_values(queries: list[tuple[str, str, float, bool]]) -> dict[str, float]:
    """How often the surest value of a row is true, and the macro F1; of queries (row, value, score, truth)."""
    equal = margin([score for *_, score, _ in queries])
    rows: dict[str, list[tuple[str, float, bool]]] = {}
    for row, value, score, is_true in queries:
        rows.setdefault(row, []).append((value, score, is_true))
    right, judged = 0.0, 0
    hits: dict[str, float] = {}
    said: dict[str, float] = {}
    true: dict[str, float] = {}
    for asked in rows.values():
        if len(asked) < 2 or sum(is_true for *_, is_true in asked) != 1:
            continue
        judged += 1
        highest = max(score for _, score, _ in asked)
        surest = [(value, is_true) for value, score, is_true in asked if score >= highest - equal]
        for value, is_true in surest:
            said[value] = said.get(value, 0) + 1 / len(surest)
            if is_true:
                right += 1 / len(surest)
                hits[value] = hits.get(value, 0) + 1 / len(surest)
        answer = next(value for value, _, is_true in asked if is_true)
        true[answer] = true.get(answer, 0) + 1
    if not judged:
        return {"class_accuracy": nan, "macro_f1": nan}
    scores = []
    for value in sorted({*said, *true}):
        missed = true.get(value, 0) - hits.get(value, 0)
        wrong = said.get(value, 0) - hits.get(value, 0)
        scores.append(hits.get(value, 0) / (hits.get(value, 0) + (missed + wrong) / 2))
    return {"class_accuracy": right / judged, "macro_f1": sum(scores) / len(scores)}


def row_features(scores: list[float], known: list[bool], own: int) -> tuple[float, float, float]:
    """The log-odds of a candidate in its row's softmax, its margin to the best rival, minus the log of its rank."""
    rivals = [score for i, score in enumerate(scores) if i != own and not known[i]]
    if not rivals:
        return 0.0, 0.0, 0.0
    best = max(rivals)
    of_rivals = best + log(sum(exp(score - best) for score in rivals))
    equal = margin([score for i, score in enumerate(scores) if not known[i]])
    rank = 1.0
    for score in rivals:
        rank += 1.0 if score > scores[own] + equal else 0.5 if score >= scores[own] - equal else 0.0
    return scores[own] - of_rivals, scores[own] - best, -log(rank)
