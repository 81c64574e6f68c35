"""Generated problems of known truth, one function a kind, and what obvious methods reach on each.

`python -m tests.kinds [KIND ...] [--seeds N] [--first-seed K]` trains each with the defaults and prints a table: the
metric of r2n and of each baseline, CPU-seconds, and the error of the printed probabilities (ECE).
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import nan
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import r2n
from r2n.evaluation.metrics import calibration
from r2n.progress import no_progress

Dice = np.random.Generator
ScoreRows = Callable[[int, np.ndarray], np.ndarray]
"""(open position, facts) -> the score of each candidate at that position, a row for each fact."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A problem as a user has it, and what the obvious baselines reach on its test queries.

    `atoms` with their `truth` are what "ap" and "accuracy" judge; "mrr" ranks the test queries. With `classes` above 1,
    that many atoms in a row are the classes of one item. If features and links are both informative, the kind
    `is_combined`, and `reachable` is what one reaches who knows how the problem was made. `others` are baselines by
    metrics other than the main one. If labels were shuffled, the kind `is_noise`.
    """

    name: str
    problem: r2n.Problem
    metric: str
    baselines: Mapping[str, float]
    atoms: np.ndarray
    truth: np.ndarray
    is_combined: bool = False
    reachable: float = nan
    classes: int = 1
    others: Mapping[str, Mapping[str, float]] | None = None
    is_noise: bool = False

    @property
    def compared(self) -> dict[str, Mapping[str, float]]:
        """The baselines by each metric."""
        return {self.metric: self.baselines, **(self.others or {})}


# what is measured


@dataclass(frozen=True, eq=False)
class Measured:
    """What a training with the defaults reaches: metrics, logits of the kind's atoms, printed probabilities."""

    metrics: Mapping[str, float]
    logits: np.ndarray
    probabilities: np.ndarray
    truth: np.ndarray
    seconds: float

    @property
    def ece(self) -> float:
        return calibration(self.probabilities, self.truth).ece


ASKED, SHOWN = 100, 10  # of a ranking, the questions whose first answers' probabilities are judged


def measure(kind: Kind, seed: int) -> Measured:
    """Train with the defaults, as a user does, and judge what is printed."""
    began, problem = process_time(), kind.problem
    model = r2n.train(problem, seed=seed, baseline=False, progress=no_progress, notify=lambda *_: None)
    metrics = {"mrr": model.evaluate("test").metrics["mrr"]} if "mrr" in kind.compared else {}
    if not len(kind.atoms):
        seconds, some = process_time() - began, np.random.default_rng(0).permutation(len(problem.test))[:ASKED]
        asked = [atom.rpartition(", ")[0] for atom in problem.knowledge.base.names(problem.test.atoms[some])]
        shown = [model.predict(f"{start}, ?)", everything=True, top=SHOWN, unknown=True) for start in asked]
        printed, atoms = (np.concatenate([getattr(p, part) for p in shown]) for part in ("probability", "atoms"))
        true = np.concatenate([part.atoms[part.truth] for part in problem.queries.values()])
        return Measured(metrics, np.zeros(0), printed, np.isin(atoms, true), seconds)
    answers = model.columns(kind.atoms)
    if answers.is_refused.any():
        raise model.no_answer(kind.atoms[answers.is_refused])
    for metric in kind.compared.keys() - metrics.keys():
        metrics[metric] = judged(metric, answers.logits, kind.truth, kind.classes)
    return Measured(metrics, answers.logits, answers.probability, kind.truth, process_time() - began)


def judged(metric: str, scores: np.ndarray, truth: np.ndarray, classes: int = 1) -> float:
    """Average precision of all atoms, or how often the best class is the true one."""
    if metric == "ap":
        return float(average_precision_score(truth, scores))
    return float(np.mean(scores.reshape(-1, classes).argmax(1) == truth.reshape(-1, classes).argmax(1)))


def reciprocal_ranks(score_rows: ScoreRows, asked: np.ndarray, known: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Of all positions of the facts that are asked, ties in the middle; other known facts are no rivals."""
    found = []
    for position, size in enumerate(sizes):
        others = [i for i in range(len(sizes)) if i != position]
        shape = [sizes[i] for i in others]
        keys = [np.asarray(np.ravel_multi_index(tuple(rows[:, others].T), shape)) for rows in (asked, known)]
        order: np.ndarray = np.argsort(keys[1], kind="stable")
        for start in range(0, len(asked), 500):
            part = slice(start, start + 500)
            scores, own = score_rows(position, asked[part]).astype(float), asked[part, position]
            first, last = (np.searchsorted(keys[1][order], keys[0][part], side) for side in ("left", "right"))
            lines = np.repeat(np.arange(len(own)), last - first)
            within = np.arange(len(lines)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
            true = scores[np.arange(len(own)), own]
            scores[lines, known[order[first[lines] + within], position]] = -np.inf
            better, equal = (scores > true[:, None]).sum(1), (scores == true[:, None]).sum(1)
            assert scores.shape[1] == size
            found.append(1 / (1 + better + equal / 2))
    return np.concatenate(found)


# baselines


def logistic(features: np.ndarray, known: np.ndarray, labels: np.ndarray, *, scaled: bool = True) -> np.ndarray:
    """The probability of each class of every item, C chosen by cross validation."""
    folds = min(5, int(np.bincount(labels).min()))
    model = LogisticRegression(max_iter=2000)
    pipeline = Pipeline([("scale", StandardScaler() if scaled else "passthrough"), ("model", model)])
    search = GridSearchCV(pipeline, {"model__C": np.logspace(-4, 2, 10)}, cv=folds, scoring="neg_log_loss")
    return np.asarray(search.fit(features[known], labels).predict_proba(features))


def neighbours(links: np.ndarray, count: int) -> csr_array:
    """The links in both directions, as a matrix of 0 and 1."""
    both = np.concatenate([links, links[:, ::-1]])
    distinct = np.unique(both, axis=0)
    return csr_array((np.ones(len(distinct)), distinct.T), shape=(count, count))


def label_propagation(links: np.ndarray, known: np.ndarray, one_hot: np.ndarray) -> np.ndarray:
    """The mean of an item's neighbours again and again, with what is known held fixed; begun with the known mean."""
    count = one_hot.shape[0]
    matrix, start = neighbours(links, count), np.tile(one_hot[known].mean(0), (count, 1))
    weights, spread = matrix.sum(1)[:, None] + 1.0, start.copy()  # the known mean counts as one neighbour
    for _ in range(50):
        spread[known] = one_hot[known]
        spread = (matrix @ spread + start) / weights
    return spread


def belief_propagation(
    links: np.ndarray, prior: np.ndarray, known: tuple[np.ndarray, np.ndarray], share: float
) -> np.ndarray:
    """Scores of classes by one who knows the log of each class's probability and how often links stay in a class."""
    classes, both = prior.shape[1], np.concatenate([links, links[:, ::-1]])
    reverse = np.roll(np.arange(len(both)), len(links))
    coupling = np.where(np.eye(classes, dtype=bool), share, (1 - share) / (classes - 1))
    own, messages = prior.copy(), np.zeros((len(both), classes))
    own[known[0]] = np.where(np.arange(classes) == known[1][:, None], 0.0, -50.0)
    for _ in range(30):
        total = own.copy()
        np.add.at(total, both[:, 1], messages)
        without = total[both[:, 0]] - messages[reverse]
        sent = np.exp(without - without.max(1, keepdims=True)) @ coupling
        messages = 0.5 * messages + 0.5 * np.log(sent / sent.sum(1, keepdims=True))
    total = own.copy()
    np.add.at(total, both[:, 1], messages)
    return total - np.logaddexp.reduce(total, axis=1, keepdims=True)


def trigram_similarity(texts: Sequence[str], pairs: np.ndarray) -> np.ndarray:
    """The Jaccard similarity of the texts' character trigrams."""
    sets = [{f"  {text} "[i : i + 3] for i in range(len(text) + 1)} for text in texts]
    return np.array([len(sets[x] & sets[y]) / len(sets[x] | sets[y]) for x, y in pairs.tolist()])


# what problems are made of


def homophilous(dice: Dice, classes: np.ndarray, degree: int, share: float) -> np.ndarray:
    """Links (from, to) of which this share stays in a class and all others leave it; `degree` from each item."""
    count, order = len(classes), np.argsort(classes, kind="stable")
    sizes = np.bincount(classes)
    first, own = np.cumsum(sizes) - sizes, np.repeat(classes, degree)
    stays, draw = dice.random(count * degree) < share, dice.random(count * degree)
    inside = first[own] + (draw * sizes[own]).astype(int)
    outside = (first[own] + sizes[own] + (draw * (count - sizes[own])).astype(int)) % count
    links = np.stack([np.repeat(np.arange(count), degree), order[np.where(stays, inside, outside)]], axis=1)
    return np.unique(np.sort(links[links[:, 0] != links[:, 1]], axis=1), axis=0)


def parts_of(dice: Dice, count: int, *shares: float) -> list[np.ndarray]:
    """The numbers below `count`, divided at random into train, valid and test."""
    ends = np.round(np.cumsum(shares) * count).astype(int)
    return np.split(dice.permutation(count), ends[:2])


def names(prefix: str, numbers: np.ndarray | int) -> list[str]:
    numbers = np.arange(numbers) if isinstance(numbers, int) else numbers
    return [f"{prefix}{i}" for i in numbers.tolist()]


def table(prefixes: Sequence[str], rows: np.ndarray, labels: np.ndarray | None = None) -> pa.Table:
    """Rows of numbers as constants named by their columns' prefixes."""
    columns: dict[str, Any] = {f"c{i}": names(prefix, rows[:, i]) for i, prefix in enumerate(prefixes)}
    return pa.table(columns if labels is None else {**columns, "label": labels.astype(int)})


def codes(problem: r2n.Problem, predicate: str, *columns: list[str]) -> np.ndarray:
    language = problem.knowledge.language
    ids = [np.array([language.constant_id(name) for name in column]) for column in columns]
    return problem.knowledge.base.encode_columns(language.predicate(predicate), ids)


# 1, 2, 5, 6, 8, 11: items with one predicate of one position

ITEM = "domain item\npredicate good(item)\n"
LINKED = """
predicate linked(item, item) closed
rule forwards: linked(x, y) & good(x) -> good(y)
rule backwards: linked(x, y) & good(y) -> good(x)
"""
PRAISED = """
domain critic
predicate praised(critic, item) closed
predicate expert(critic) closed
rule praise: praised(c, x) & expert(c) -> good(x)
"""


def items(
    name: str,
    seed: int,
    *,
    count: int = 400,
    shares: tuple[float, float, float] = (0.3, 0.2, 0.5),
    signal: float = 0.0,
    degree: int = 0,
    is_praised: bool = False,
    positives_only: bool = False,
    rate: float = 0.5,
    shuffled: bool = False,
) -> Kind:
    """Labelled items: 20 features with this signal, `degree` homophilous links each, praise by critics; as asked."""
    dice, share = np.random.default_rng([seed, count]), 0.75
    truth = dice.permutation(count) < round(rate * count)
    features = dice.normal(size=(count, 20))
    weights = np.zeros(20) if not signal else np.concatenate([np.full(8, signal / np.sqrt(8)), np.zeros(12)])
    features += np.where(truth, 0.5, -0.5)[:, None] * weights
    links = homophilous(dice, truth.astype(int), degree, share)
    critics, experts = np.stack([dice.integers(60, size=count), np.arange(count)], axis=1), np.arange(60) < 30
    is_right = dice.random(count) < 0.75  # an expert praises good items, another critic bad ones
    critics[:, 0] = np.where(truth == is_right, critics[:, 0] % 30, 30 + critics[:, 0] % 30)
    truth = dice.permutation(truth) if shuffled else truth
    train, valid, test = parts_of(dice, count, *shares)
    if rate < 0.1:  # as many true ones in each part as its share says
        split = [np.split(part, np.round(np.cumsum(shares[:2]) * len(part)).astype(int)) for part in (
            dice.permutation(np.flatnonzero(truth)), dice.permutation(np.flatnonzero(~truth)))]  # fmt: skip
        train, valid, test = (np.concatenate(both) for both in zip(*split, strict=True))
    known = train[truth[train]] if positives_only else train

    def labels(part: np.ndarray) -> pa.Table:
        part = part[truth[part]] if positives_only else part
        return table(("i",), part[:, None], None if positives_only else truth[part])

    facts: dict[str, object] = {"good": labels(train)}
    if degree:
        facts["linked"] = table(("i", "i"), links)
    if is_praised:
        facts |= {"praised": table(("c", "i"), critics), "expert": table(("c",), np.flatnonzero(experts)[:, None])}
    problem = r2n.Problem.from_facts(
        facts,
        theory=ITEM + LINKED * bool(degree) + PRAISED * is_praised,
        queries={"valid": {"good": labels(valid)}, "test": {"good": table(("i",), test[:, None], truth[test])}},
        features={"item": dict(zip(names("i", count), features, strict=True))} if signal else None,
        domains={"item": names("i", count)},
        name=name,
    )
    # what is known: of positives alone, all others count as negatives
    labelled = np.setdiff1d(np.arange(count), test) if positives_only else train
    is_positive = np.isin(labelled, known) if positives_only else truth[train]
    found: dict[str, np.ndarray] = {}
    if signal:
        found["logistic regression"] = logistic(features, labelled, is_positive.astype(int))[:, 1]
    one_hot = np.zeros((count, 2))
    one_hot[known, truth[known].astype(int)] = 1
    if degree:
        start = known if not positives_only else labelled
        spread = one_hot if not positives_only else np.stack([1 - one_hot[:, 1], one_hot[:, 1]], axis=1)
        found["label propagation"] = label_propagation(links, start, spread)[:, 1]
        found["rules counted"] = neighbours(links, count) @ one_hot[:, 1]
    if is_praised:
        praise = experts[critics[:, 0]].astype(float)
        found["rules counted"] = found.get("rules counted", np.zeros(count)) + praise
    reachable = nan
    if signal and degree and not shuffled:
        log_odds = features @ weights + (np.where(experts[critics[:, 0]], 1, -1) * np.log(3) if is_praised else 0)
        prior = np.stack([np.zeros(count), log_odds], axis=1)
        best = belief_propagation(links, prior, (known, truth[known].astype(int)), share)[:, 1]
        reachable = judged("ap", best[test], truth[test])
    baselines = {name: judged("ap", scores[test], truth[test]) for name, scores in found.items()}
    atoms, is_combined = codes(problem, "good", names("i", test)), bool(signal and degree)
    combined = {"is_combined": is_combined and not shuffled, "reachable": reachable, "is_noise": shuffled}
    return Kind(name, problem, "ap", baselines, atoms, truth[test], **combined)


def unary_with_negatives(seed: int, *, shuffled: bool = False) -> Kind:
    return items("unary with negatives", seed, signal=1.8, degree=2, shuffled=shuffled)


def unary_with_positives(seed: int) -> Kind:
    return items("unary with positives", seed, signal=1.8, degree=2, positives_only=True)


def features_only(seed: int, *, shuffled: bool = False) -> Kind:
    return items("features only", seed, signal=1.8, shuffled=shuffled)


def links_only(seed: int, *, shuffled: bool = False) -> Kind:
    return items("links only", seed, degree=3, shuffled=shuffled)


def all_together(seed: int) -> Kind:
    return items("all together", seed, signal=1.5, degree=2, is_praised=True)


def imbalanced(seed: int) -> Kind:
    shares = (0.5, 0.1, 0.4)
    return items("imbalanced", seed, count=8000, shares=shares, signal=3.5, rate=1 / 101)


# 3: a functional predicate with few values


def functional(seed: int, *, shuffled: bool = False) -> Kind:
    """The topic of papers with 200 words, 0 or 1, and citations that mostly stay within a topic."""
    dice, count, topics, share = np.random.default_rng([seed, 3]), 500, 5, 0.72
    topic = dice.permutation(np.arange(count) % topics)
    often = np.full((topics, 200), 0.04)
    often[np.arange(200) % topics, np.arange(200)] = 0.14
    words = (dice.random((count, 200)) < often[topic]).astype(float)
    links = homophilous(dice, topic, 2, share)
    topic = dice.permutation(topic) if shuffled else topic
    train, valid, test = parts_of(dice, count, 0.3, 0.2, 0.5)
    rows = {
        part: table(("p", "t"), np.stack([which, topic[which]], axis=1))
        for part, which in (("train", train), ("valid", valid), ("test", test))
    }
    problem = r2n.Problem.from_facts(
        {"topic": rows["train"], "cites": table(("p", "p"), links)},
        theory="""
            domain paper
            domain subject
            predicate cites(paper, paper) closed
            predicate topic(paper, subject)
            rule cited: cites(x, y) & topic(x, t) -> topic(y, t)
            rule citing: cites(x, y) & topic(y, t) -> topic(x, t)
        """,
        queries={part: {"topic": rows[part]} for part in ("valid", "test")},
        features={"paper": dict(zip(names("p", count), words, strict=True))},
        domains={"paper": names("p", count), "subject": names("t", topics)},
        name="functional",
    )
    one_hot = np.eye(topics)[topic] * np.isin(np.arange(count), train)[:, None]
    found = {
        "logistic regression": logistic(words, train, topic[train], scaled=False),
        "label propagation": label_propagation(links, train, one_hot),
        "rules counted": neighbours(links, count) @ one_hot,
        "popularity": np.tile(one_hot.sum(0), (count, 1)),
    }
    best = belief_propagation(
        links, words @ np.log(often).T + (1 - words) @ np.log(1 - often).T, (train, topic[train]), share
    )
    truth = np.eye(topics, dtype=bool)[topic[test]].ravel()
    scored = {
        metric: {name: judged(metric, scores[test].ravel(), truth, topics) for name, scores in found.items()}
        for metric in ("accuracy", "ap")
    }
    reachable = nan if shuffled else judged("accuracy", best[test].ravel(), truth, topics)
    pairs = [name for name in names("p", test) for _ in range(topics)], names("t", topics) * len(test)
    return Kind(
        "functional", problem, "accuracy", scored["accuracy"], codes(problem, "topic", *pairs), truth,
        not shuffled, reachable, topics, {"ap": scored["ap"]}, shuffled,
    )  # fmt: skip


# 4: pairs

SYLLABLES = ("ka", "ri", "mo", "ten", "sol", "ba", "lin", "dor", "vi", "per", "na", "gust")


def misspelt(dice: Dice, text: str) -> str:
    """One letter left out, doubled or swapped with the next."""
    at, how = int(dice.integers(1, len(text) - 1)), int(dice.integers(3))
    letters = ("", text[at] * 2, text[at + 1] + text[at])[how]
    return text[:at] + letters + text[at + 1 + (how == 2) :]


def messy_names(dice: Dice, people: np.ndarray) -> list[str]:
    """A name for each record of a person: first names, family names and towns are shared by several people."""
    words = ["".join(dice.choice(SYLLABLES, 3)) for _ in range(48)]
    parts = np.stack([dice.integers(16 * i, 16 * i + 16, size=people.max() + 1) for i in range(3)], axis=1)
    found = []
    for person in people.tolist():
        first, family, town = (
            misspelt(dice, words[part]) if dice.random() < 0.35 else words[part] for part in parts[person].tolist()
        )
        first = first[0] if dice.random() < 0.4 else first
        name = f"{family} {first}" if dice.random() < 0.4 else f"{first} {family}"
        found.append(f"{name} {town}" if dice.random() < 0.6 else name)
    return found


def pairs(seed: int, *, shuffled: bool = False) -> Kind:
    """Which records are of the same person: four records each with messy names; labels of candidate pairs."""
    dice, people = np.random.default_rng([seed, 4]), np.repeat(np.arange(40), 4)
    count = len(people)
    texts = messy_names(dice, people)
    every = np.stack(np.triu_indices(count, 1), axis=1)
    similarity, is_same = trigram_similarity(texts, every), people[every[:, 0]] == people[every[:, 1]]
    is_hard = np.zeros(len(every), bool)  # the most similar pairs of other people
    is_hard[np.argsort(np.where(is_same, -1.0, similarity))[-is_same.sum() :]] = True
    asked = np.flatnonzero(is_same | is_hard | (dice.random(len(every)) < 0.05))
    rows, similarity, truth = every[asked], similarity[asked], is_same[asked]
    truth = dice.permutation(truth) if shuffled else truth
    train, valid, test = parts_of(dice, len(rows), 0.4, 0.2, 0.4)
    labelled = {
        part: {"same": table(("r", "r"), rows[which], truth[which])}
        for part, which in (("train", train), ("valid", valid), ("test", test))
    }
    problem = r2n.Problem.from_facts(
        labelled["train"],
        theory="""
            domain record
            predicate same(record, record)
            rule symmetry: same(x, y) -> same(y, x)
            rule transitivity: same(x, y) & same(y, z) -> same(x, z)
        """,
        queries={part: labelled[part] for part in ("valid", "test")},
        features={"record": dict(zip(names("r", count), texts, strict=True))},
        domains={"record": names("r", count)},
        name="pairs",
    )
    linked = neighbours(rows[train[truth[train]]], count).toarray()
    closed = np.linalg.matrix_power(linked + np.eye(count), 3)
    words = [set(text.split()) for text in texts]
    shared = np.array([[len(words[x] & words[y]), len(words[x] ^ words[y])] for x, y in rows.tolist()])
    measured = np.concatenate([similarity[:, None], shared], axis=1)
    found = {
        "string similarity": similarity,
        "logistic regression": logistic(measured, train, truth[train].astype(int))[:, 1],
        "rules counted": (linked @ linked)[rows[:, 0], rows[:, 1]],
        "similarity, then rules": similarity + (closed[rows[:, 0], rows[:, 1]] > 0),
    }
    baselines = {name: judged("ap", scores[test], truth[test]) for name, scores in found.items()}
    atoms = codes(problem, "same", *(names("r", column) for column in rows[test].T))
    return Kind("pairs", problem, "ap", baselines, atoms, truth[test], is_noise=shuffled)


# 7, 10, 12: rankings of what rules conclude

Given = tuple[tuple[str, ...], np.ndarray]
"""The prefixes of the constants of facts, and their rows."""
Divided = tuple[tuple[str, ...], list[np.ndarray]]
"""The same, with the rows of train, valid and test."""


def ranking(
    name: str,
    theory: str,
    domains: Mapping[str, tuple[str, int]],
    background: Mapping[str, Given],
    facts: Mapping[str, Divided],
    counts: Mapping[str, ScoreRows],
    *,
    is_noise: bool = False,
) -> Kind:
    """Facts of predicates that are asked, the background known; `domains`: prefix and number of the constants.

    `counts`: how many ground rules conclude each candidate from what is known.
    """
    sizes = dict(domains.values())
    tables = [{p: table(prefixes, parts[i]) for p, (prefixes, parts) in facts.items()} for i in range(3)]
    problem = r2n.Problem.from_facts(
        {**{p: table(*given) for p, given in background.items()}, **tables[0]},
        theory=theory,
        queries={"valid": tables[1], "test": tables[2]},
        domains={domain: names(*each) for domain, each in domains.items()},
        name=name,
    )
    found: dict[str, list[np.ndarray]] = {"popularity": [], "rules counted": [], "rules, then popularity": []}
    for predicate, (prefixes, parts) in facts.items():
        shape = [sizes[prefix] for prefix in prefixes]
        popularity = partial(popular, [np.bincount(parts[0][:, i], minlength=size) for i, size in enumerate(shape)])
        rules = counts.get(predicate, partial(popular, [np.zeros(size) for size in shape]))
        for scores, each in zip((popularity, rules, partial(first_by, rules, popularity)), found.values(), strict=True):
            each.append(reciprocal_ranks(scores, parts[2], np.concatenate(parts), shape))
    baselines = {name: float(np.mean(np.concatenate(each))) for name, each in found.items()}
    nothing = np.zeros(0, np.int64)
    return Kind(name, problem, "mrr", baselines, nothing, nothing.astype(bool), is_noise=is_noise)


def divided(dice: Dice, rows: np.ndarray, *shares: float) -> list[np.ndarray]:
    return [rows[part] for part in parts_of(dice, len(rows), *shares)]


def popular(often: Sequence[np.ndarray], position: int, asked: np.ndarray) -> np.ndarray:
    return np.tile(often[position], (len(asked), 1))


def first_by(first: ScoreRows, second: ScoreRows, position: int, asked: np.ndarray) -> np.ndarray:
    """The scores of the first, equal ones in the order of the second."""
    return first(position, asked) + 1e-6 * second(position, asked)


def of_grid(grid: np.ndarray, position: int, asked: np.ndarray) -> np.ndarray:
    """The candidates' scores in an array with an axis for each position."""
    others = [asked[:, i] for i in range(grid.ndim) if i != position]
    return np.moveaxis(grid, position, -1)[tuple(others)]


def rules_only(seed: int, *, shuffled: bool = False) -> Kind:
    """Where people live: most often where their employer is, or with their partner."""
    dice, people, firms, cities = np.random.default_rng([seed, 7]), 300, 40, 15
    firm, city_of = dice.integers(firms, size=people), dice.integers(cities, size=firms)
    couples = dice.permutation(people).reshape(-1, 2)
    home = np.where(dice.random(people) < 0.7, city_of[firm], dice.integers(cities, size=people))
    home[couples[:, 1]] = np.where(dice.random(len(couples)) < 0.8, *home[couples.T])
    home = dice.permutation(home) if shuffled else home

    train, valid, test = divided(dice, np.stack([np.arange(people), home], axis=1), 0.4, 0.2, 0.4)
    known = np.zeros((people, cities))
    known[tuple(train.T)] = 1
    counts = np.eye(cities)[city_of[firm]] + neighbours(couples, people) @ known
    theory = """
        domain person
        domain firm
        domain city
        predicate works(person, firm) closed
        predicate located(firm, city) closed
        predicate partner(person, person) closed
        predicate lives(person, city)
        rule near_work: works(x, f) & located(f, c) -> lives(x, c)
        rule together: partner(x, y) & lives(y, c) -> lives(x, c)
        rule together_too: partner(y, x) & lives(y, c) -> lives(x, c)
    """
    domains = {"person": ("p", people), "firm": ("f", firms), "city": ("c", cities)}
    background: dict[str, Given] = {
        "works": (("p", "f"), np.stack([np.arange(people), firm], axis=1)),
        "located": (("f", "c"), np.stack([np.arange(firms), city_of], axis=1)),
        "partner": (("p", "p"), couples),
    }
    facts: dict[str, Divided] = {"lives": (("p", "c"), [train, valid, test])}
    rules = {"lives": partial(of_grid, counts)}
    kind = ranking("rules only", theory, domains, background, facts, rules, is_noise=shuffled)
    truth = np.eye(cities, dtype=bool)[test[:, 1]].ravel()
    scored = {"rules counted": counts[test[:, 0]], "popularity": np.tile(known.sum(0), (len(test), 1))}
    accuracy = {name: judged("accuracy", scores.ravel(), truth, cities) for name, scores in scored.items()}
    grid = [name for name in names("p", test[:, 0]) for _ in range(cities)], names("c", cities) * len(test)
    atoms = codes(kind.problem, "lives", *grid)
    return replace(kind, atoms=atoms, truth=truth, classes=cities, others={"accuracy": accuracy})


def n_ary(seed: int) -> Kind:
    """Who supplies what to whom: most often somebody who makes it, somebody who needs it, and who know each other."""
    dice, shape = np.random.default_rng([seed, 10]), (30, 25, 25)
    makes, needs, knows = (dice.random((shape[i], shape[j])) < 0.25 for i, j in ((0, 1), (2, 1), (0, 2)))
    follows = makes[:, :, None] & needs.T[None] & knows[:, None, :]
    supplies = np.where(follows, dice.random(shape) < 0.8, dice.random(shape) < 0.003)
    theory = """
        domain supplier
        domain part
        domain project
        predicate makes(supplier, part) closed
        predicate needs(project, part) closed
        predicate knows(supplier, project) closed
        predicate supplies(supplier, part, project)
        rule trade: makes(s, p) & needs(j, p) & knows(s, j) -> supplies(s, p, j)
    """
    domains = {"supplier": ("s", shape[0]), "part": ("p", shape[1]), "project": ("j", shape[2])}
    background: dict[str, Given] = {
        "makes": (("s", "p"), np.argwhere(makes)),
        "needs": (("j", "p"), np.argwhere(needs)),
        "knows": (("s", "j"), np.argwhere(knows)),
    }
    facts: dict[str, Divided] = {"supplies": (("s", "p", "j"), divided(dice, np.argwhere(supplies), 0.5, 0.2, 0.3))}
    counts = {"supplies": partial(of_grid, follows.astype(float))}
    return ranking("n-ary", theory, domains, background, facts, counts)


def graph(name: str, seed: int, count: int, pairs_of_each: int) -> Kind:
    """A graph: `r` mostly follows from `p` and `q`; `s` mostly points to popular constants."""
    dice = np.random.default_rng([seed, count])

    def some(number: int, tails: np.ndarray | None = None) -> np.ndarray:
        rows = dice.integers(count, size=(number, 2))
        if tails is not None:
            rows[:, 1] = tails
        return np.unique(rows[rows[:, 0] != rows[:, 1]], axis=0)

    p, q = some(pairs_of_each), some(pairs_of_each)
    matrices = [csr_array((np.ones(len(rows)), rows.T), shape=(count, count)) for rows in (p, q)]
    paths = csr_array(matrices[0] @ matrices[1])
    concluded = np.stack(paths.nonzero(), axis=1)
    concluded = concluded[dice.random(len(concluded)) < 0.8]
    concluded = concluded[dice.permutation(len(concluded))[:pairs_of_each]]
    r = np.unique(np.concatenate([concluded, some(len(concluded) // 5)]), axis=0)
    s = some(pairs_of_each // 2, (count * dice.random(pairs_of_each // 2) ** 4).astype(int))
    columns = csr_array(paths.T)

    def score(position: int, asked: np.ndarray) -> np.ndarray:
        return (columns[asked[:, 1]] if position == 0 else paths[asked[:, 0]]).toarray()

    theory = """
        domain thing
        predicate p(thing, thing) closed
        predicate q(thing, thing) closed
        predicate r(thing, thing)
        predicate s(thing, thing)
        rule path: p(x, y) & q(y, z) -> r(x, z)
    """
    both, shares = ("e", "e"), (0.6, 0.15, 0.25) if count < 1000 else (0.9, 0.05, 0.05)
    background: dict[str, Given] = {"p": (both, p), "q": (both, q)}
    facts: dict[str, Divided] = {"r": (both, divided(dice, r, *shares)), "s": (both, divided(dice, s, *shares))}
    return ranking(name, theory, {"thing": ("e", count)}, background, facts, {"r": score})


def small_graph(seed: int) -> Kind:
    return graph("small graph", seed, 50, 120)


def large_graph(seed: int) -> Kind:
    return graph("large graph", seed, 20_000, 15_000)


# 9: clauses of Markov logic


def clauses(seed: int) -> Kind:
    """Who advises whom, from publications, courses, phases and positions: weighted clauses, labels true and false."""
    dice, students, professors, courses = np.random.default_rng([seed, 9]), 120, 25, 40
    advisor, phase = dice.integers(15, size=students), dice.integers(3, size=students)  # ten are no faculty
    has_advisor = phase > 0
    titles = [np.stack([np.arange(2 * students), np.repeat(np.arange(students), 2)], axis=1)]
    publishes = np.repeat(has_advisor, 2) & (dice.random(2 * students) < 0.5)
    with_whom = np.where(publishes, np.repeat(advisor, 2), dice.integers(professors, size=2 * students))
    is_joint = publishes | (dice.random(2 * students) < 0.3)
    joint = np.stack([np.arange(2 * students), with_whom], axis=1)[is_joint]
    teacher = dice.integers(professors, size=courses)
    of_advisor = np.argmax(dice.random((students, courses)) * (teacher == advisor[:, None]), axis=1)
    helps = has_advisor & (dice.random(students) < 0.6)
    course = np.where(helps, of_advisor, dice.integers(courses, size=students))
    truth = has_advisor[:, None] & (advisor[:, None] == np.arange(professors))
    theory = """
        domain student
        domain professor
        domain title
        domain course
        domain phase
        domain position
        predicate wrote(title, student) closed
        predicate authored(title, professor) closed
        predicate taughtBy(course, professor) closed
        predicate ta(course, student) closed
        predicate inPhase(student, phase) closed
        predicate hasPosition(professor, position) closed
        predicate advisedBy(student, professor)
        rule joint [1.7]: !wrote(t, x) | !authored(t, y) | advisedBy(x, y)
        rule assists [0.9]: !ta(c, x) | !taughtBy(c, y) | advisedBy(x, y)
        rule faculty [2.5]: !advisedBy(x, y) | hasPosition(y, "faculty")
        rule beginner [3.0]: !inPhase(x, "phase0") | !advisedBy(x, y)
        rule one [2.0]: !advisedBy(x, y) | !advisedBy(x, z), y != z
    """
    of_students = parts_of(dice, students, 0.5, 0.15, 0.35)
    grids = [
        np.stack(np.meshgrid(part, np.arange(professors), indexing="ij"), -1).reshape(-1, 2) for part in of_students
    ]
    labelled = [{"advisedBy": table(("x", "y"), grid, truth[tuple(grid.T)])} for grid in grids]
    everyone, teachers = np.arange(students), np.arange(professors)
    position = np.where(teachers < 15, "faculty", "visiting").tolist()
    facts = {
        "wrote": table(("t", "x"), titles[0]),
        "authored": table(("t", "y"), joint),
        "taughtBy": table(("c", "y"), np.stack([np.arange(courses), teacher], axis=1)),
        "ta": table(("c", "x"), np.stack([course, everyone], axis=1)),
        "inPhase": table(("x", "phase"), np.stack([everyone, phase], axis=1)),
        "hasPosition": pa.table({"c0": names("y", teachers), "c1": position}),
    }
    problem = r2n.Problem.from_facts(
        {**facts, **labelled[0]},
        theory=theory,
        queries={"valid": labelled[1], "test": labelled[2]},
        domains={"student": names("x", students), "professor": names("y", professors)},
        name="clauses",
    )
    papers, taught = np.zeros((students, professors)), np.zeros((students, professors))
    np.add.at(papers, (joint[:, 0] // 2, joint[:, 1]), 1)
    taught[everyone, teacher[course]] += 1
    rest = np.broadcast_to((phase > 0)[:, None], papers.shape), np.broadcast_to(teachers < 15, papers.shape)
    counted = np.stack([papers, taught, *rest], axis=-1).reshape(-1, 4).astype(float)
    known, asked = (np.asarray(np.ravel_multi_index(tuple(grids[i].T), truth.shape)) for i in (0, 2))
    found = {
        "rules counted": counted[:, 0] + counted[:, 1],
        "popularity": np.tile(truth[of_students[0]].sum(0), students).astype(float),
        "logistic regression of the clauses": logistic(counted, known, truth.ravel()[known].astype(int))[:, 1],
    }
    baselines = {name: judged("ap", scores[asked], truth.ravel()[asked]) for name, scores in found.items()}
    atoms = codes(problem, "advisedBy", names("x", grids[2][:, 0]), names("y", grids[2][:, 1]))
    return Kind("clauses", problem, "ap", baselines, atoms, truth.ravel()[asked])


KINDS: dict[str, Callable[[int], Kind]] = {
    made.__name__: made
    for made in (
        unary_with_negatives, unary_with_positives, functional, pairs, features_only, links_only, rules_only,
        all_together, clauses, n_ary, imbalanced, small_graph, large_graph,
    )
}  # fmt: skip
NOISE: dict[str, Callable[[int], Kind]] = {
    f"noise_{made.__name__}": partial(made, shuffled=True)
    for made in (unary_with_negatives, functional, pairs, links_only, rules_only)
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = KINDS | NOISE
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(every)} (default: all)")
    parser.add_argument("--seeds", type=int, default=1, help="how many (default: 1)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="K", help="seeds count from here (default: 0)")
    parser.add_argument("--untrained", action="store_true", help="the baselines alone")
    given = parser.parse_args(arguments)
    if unknown := set(given.kinds) - every.keys():
        parser.error(f"there is no kind {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    for name in given.kinds or every:
        found = []
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            kind = every[name](seed)
            measured = None if given.untrained else measure(kind, seed)
            for metric, baselines in kind.compared.items():
                cells = [f"{name:22} {seed} {metric:8}"]
                if measured is not None:
                    gap = measured.metrics[metric] - max(baselines.values())
                    cells.append(f"r2n {measured.metrics[metric]:.3f} ({gap:+.3f})")
                    cells.append(f"{measured.seconds:.0f} s  ECE {measured.ece:.3f}")
                cells += [f"{label} {value:.3f}" for label, value in baselines.items()]
                cells += [f"[reachable {kind.reachable:.3f}]"] * (kind.is_combined and metric == kind.metric)
                sys.stdout.write("  ".join(cells) + "\n")
            sys.stdout.flush()
            if measured is not None:
                found.append((kind, measured))
        if len(found) > 1:
            sys.stdout.write(f"{name:22} mean of {len(found)}: {summary(found)}\n")


def summary(found: Sequence[tuple[Kind, Measured]]) -> str:
    """Metrics and baselines as means over seeds; the ECE of all printed probabilities together."""
    cells = []
    for metric, baselines in found[0][0].compared.items():
        cells.append(f"{metric} {np.mean([m.metrics[metric] for _, m in found]):.3f}")
        cells += [f"{label} {np.mean([k.compared[metric][label] for k, _ in found]):.3f}" for label in baselines]
    return "  ".join([*cells, f"ECE {pooled_ece([measured for _, measured in found]):.3f}"])


def pooled_ece(found: Sequence[Measured]) -> float:
    """The ECE over several seeds: of a few hundred probabilities, even perfect ones have one of 0.05 and more."""
    printed, truth = (np.concatenate([getattr(m, part) for m in found]) for part in ("probabilities", "truth"))
    return calibration(printed, truth).ece


if __name__ == "__main__":
    main()
