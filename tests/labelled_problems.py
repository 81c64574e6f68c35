"""Generated classification problems: items with labels, texts of one topic each, people of one department each."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import r2n
from r2n.data.features import FeatureTable
from r2n.data.problem import Problem
from r2n.options import Options


def table(predicate: str, rows: Sequence[tuple[object, ...]], *, labelled: bool = False) -> r2n.Table:
    """Rows of constants, the last cell the label where there are labels."""
    width = len(rows[0])
    names = [f"c{i}" for i in range(width - labelled)] + ["label"] * labelled
    return r2n.Table(pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}), predicate)


def vectors(values: np.ndarray, names: list[str]) -> FeatureTable:
    columns = {f"f{i}": column.tolist() for i, column in enumerate(values.T)}
    return FeatureTable(pa.table({"id": names, **columns}), vector=tuple(columns))


def items(seed: int = 0, count: int = 120, *, only_true: bool = False, sections: object = None) -> Problem:
    """Half of the items are good, as their features and those they are linked to say; labels true and false."""
    dice = np.random.default_rng(seed)
    truth = dice.random(count) < 0.5
    features = dice.normal(size=(count, 10))
    features[:, :4] += np.where(truth, 0.6, -0.6)[:, None]
    names = [f"i{i}" for i in range(count)]
    links = []
    for i in range(count):
        same, other = np.flatnonzero(truth == truth[i]), np.flatnonzero(truth != truth[i])
        links += [(names[i], names[int(dice.choice(same if dice.random() < 0.8 else other))]) for _ in range(2)]
    order = dice.permutation(count)
    parts = {"train": order[: count // 3], "valid": order[count // 3 : count // 2], "test": order[count // 2 :]}

    def labels(part: str) -> r2n.Table:
        rows = [(names[i], int(truth[i])) for i in parts[part] if truth[i] or not (only_true and part == "train")]
        return table("good", rows, labelled=True)

    theory = r2n.parse_theory("""
        domain item
        predicate linked(item, item) closed
        predicate good(item)
        rule alike: good(x) & linked(x, y) -> good(y)
    """)
    return Problem.build(
        "items",
        theory,
        [table("linked", sorted(set(links))), labels("train")],
        {"valid": [labels("valid")], "test": [labels("test")]},
        features={"item": vectors(features, names)},
        options=Options.model_validate(sections or {}),
    )


def topics(seed: int = 0, count: int = 150, kinds: int = 5) -> Problem:
    """Texts of ten words, each of one topic, three words of which are most often its own; all queries are true."""
    dice = np.random.default_rng(seed)
    truth = dice.integers(kinds, size=count)
    own = dice.random((count, 10)) < 0.3
    words = np.where(
        own, 100 * (truth[:, None] + 1) + dice.integers(20, size=own.shape), dice.integers(60, size=own.shape)
    )
    names = [f"t{i}" for i in range(count)]
    texts = FeatureTable(
        pa.table({"id": names, "text": [" ".join(f"w{w}" for w in row) for row in words]}), text="text"
    )

    def part(first: int, last: int) -> list[r2n.Table]:
        return [table("topic", [(names[i], f"k{truth[i]}") for i in range(first, last)])]

    theory = r2n.parse_theory("domain text, kind\npredicate topic(text, kind)\n")
    third = count // 3
    queries = {"valid": part(third, 2 * third), "test": part(2 * third, count)}
    return Problem.build("topics", theory, part(0, third), queries, features={"text": texts})


def staff(seed: int = 0, count: int = 120, *, labelled: bool) -> Problem:
    """People of one department each, most often that of whom they report to; validation has labels or true facts."""
    dice, kinds = np.random.default_rng(seed), 4
    truth = dice.integers(kinds, size=count)
    names = [f"p{i}" for i in range(count)]
    reports = []
    for i in range(count):
        same = np.flatnonzero(truth == truth[i]) if dice.random() < 0.85 else np.arange(count)
        reports += [(names[i], names[int(j)]) for j in dice.choice(same, 2) if j != i]
    third = count // 3

    def part(first: int, last: int, *, labels: bool = False) -> list[r2n.Table]:
        every = [(names[i], f"d{k}", int(truth[i] == k)) for i in range(first, last) for k in range(kinds)]
        return [table("works_in", [row for row in every if labels or row[2]], labelled=True)]

    theory = r2n.parse_theory("""
        domain person, department
        predicate reports_to(person, person) closed
        predicate works_in(person, department)
        rule up: reports_to(x, y) & works_in(y, z) -> works_in(x, z)
        rule down: reports_to(x, y) & works_in(x, z) -> works_in(y, z)
    """)
    queries = {"valid": part(third, 2 * third, labels=labelled), "test": part(2 * third, count)}
    return Problem.build("staff", theory, [table("reports_to", sorted(set(reports))), *part(0, third)], queries)


def featured_graph(seed: int = 0, count: int = 150, *, vector: bool = True) -> Problem:
    """Two predicates link things as a map of their hidden vectors says; features are these vectors, with noise."""
    dice = np.random.default_rng(seed)
    hidden = dice.normal(size=(count, 6))
    names, rows = [f"e{i}" for i in range(count)], []
    for predicate in ("p", "q"):
        scores = hidden @ dice.normal(size=(6, 6)) @ hidden.T + dice.gumbel(size=(count, count))
        nearest = np.argsort(-scores, axis=1)[:, :4]
        rows += [(names[i], predicate, names[j]) for i in range(count) for j in nearest[i].tolist()]
    rows = [rows[i] for i in dice.permutation(len(rows))]
    part = len(rows) // 10

    def facts(some: list[tuple[str, str, str]]) -> list[r2n.Table]:
        return [r2n.Table(pa.table({name: [row[i] for row in some] for i, name in enumerate(("h", "r", "t"))}))]

    noisy = vectors(hidden + 0.3 * dice.normal(size=hidden.shape), names)
    theory = r2n.parse_theory("domain d\npredicate p(d, d)\npredicate q(d, d)\n")
    queries = {"valid": facts(rows[:part]), "test": facts(rows[part : 2 * part])}
    features = {"d": noisy} if vector else {}
    return Problem.build("featured graph", theory, facts(rows[2 * part :]), queries, features=features)


def relatives(seed: int = 0, count: int = 150, *, labelled: bool = False) -> Problem:
    """Who is whose child, which follows from who is whose parent, and who likes whom, mostly some popular people.

    The queries are true, or (`labelled`) as many of each predicate are false, with constants that true ones have.
    """
    dice, names = np.random.default_rng(seed), [f"p{i}" for i in range(count)]
    parents = {(a, int(b)) for a in range(count) for b in dice.choice(count, dice.integers(1, 4), replace=False)}
    likes = {(a, int(count * dice.random() ** 3)) for a in range(count) for _ in range(2)}
    facts = [("child", b, a) for a, b in sorted(parents)] + [("likes", a, b) for a, b in sorted(likes)]
    facts = [facts[i] for i in dice.permutation(len(facts))]
    ends = [int(share * len(facts)) for share in (0.6, 0.8)]
    given = {"valid": facts[ends[0] : ends[1]], "test": facts[ends[1] :]}
    taken, queries = set(facts), dict[str, list[tuple[str, str, str, bool]]]()
    for split, part in given.items():
        rows = [(*fact, True) for fact in part]
        for predicate, a, _ in part if labelled else ():
            while (false := (predicate, a, part[int(dice.integers(len(part)))][2])) in taken:
                pass
            taken.add(false)
            rows.append((*false, False))
        queries[split] = [(predicate, names[a], names[b], truth) for predicate, a, b, truth in rows]
    known = [("parent", a, b) for a, b in sorted(parents)] + facts[: ends[0]]
    theory = "domain person\n" + "".join(f"predicate {name}(person, person)\n" for name in ("parent", "child", "likes"))
    return Problem.from_facts(
        [(predicate, names[a], names[b]) for predicate, a, b in known],
        theory=theory,
        queries=queries,
        domains={"person": names},
    )
