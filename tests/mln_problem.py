"""Who advises whom at a university: clauses over typed predicates, most of them closed, and labels of both kinds."""

import numpy as np
import pyarrow as pa

from r2n.data.problem import Problem
from r2n.data.tables import Table
from r2n.logic.parser import parse_theory

DECLARATIONS = """
domain person, title, course, term, phase, post
predicate student(person) closed
predicate professor(person) closed
predicate inPhase(person, phase) closed
predicate hasPosition(person, post) closed
predicate publication(title, person) closed
predicate taughtBy(course, person, term) closed
predicate ta(course, person, term) closed
predicate advisedBy(person, person)
"""
OPEN_CLAUSES = """
rule joint: publication(t, x) & publication(t, y) & student(x) & professor(y) -> advisedBy(x, y)
rule assists: ta(c, x, t) & taughtBy(c, y, t) -> advisedBy(x, y)
rule advisor: advisedBy(x, y) -> professor(y)
rule advised: advisedBy(x, y) -> student(x)
rule one: advisedBy(x, y) -> !advisedBy(x, z), y != z
"""
CLOSED_CLAUSES = """
rule either: professor(x) -> !student(x)
rule in_phase: inPhase(x, q) -> student(x)
rule has_post: hasPosition(x, q) -> professor(x)
rule teaches: taughtBy(c, x, t) -> professor(x)
rule colleagues: publication(t, x) & publication(s, x) & publication(t, y) -> publication(s, y)
rule same_course: ta(c, x, t) & taughtBy(c, y, t) & publication(s, x) -> publication(s, y)
rule same_term: taughtBy(c, x, t) & taughtBy(d, y, t) & publication(s, x) -> publication(s, y)
rule same_phase: inPhase(x, q) & inPhase(y, q) & inPhase(z, q) & ta(c, x, t) -> ta(c, z, t)
"""
UNTYPED = OPEN_CLAUSES + CLOSED_CLAUSES
THEORY = DECLARATIONS + UNTYPED


def university(
    seed: int = 0, theory: str = THEORY, *, students: int = 90, professors: int = 30, **given: object
) -> Problem:
    """About 300 constants; each pair of a student and a professor is labelled, in train, valid or test."""
    dice = np.random.default_rng(seed)
    advisor, phase = dice.integers(professors, size=students), dice.integers(3, size=students)
    titles, courses = 130, 40
    author = dice.integers(students, size=titles)
    is_joint = dice.random(titles) < 0.6
    teacher, term = dice.integers(professors, size=courses), dice.integers(6, size=courses)
    helped = np.array([dice.choice(np.flatnonzero(teacher == a)) if (teacher == a).any() else 0 for a in advisor])
    s, p = (lambda i: f"s{i}"), (lambda i: f"p{i}")
    rows = {
        "student": [(s(i),) for i in range(students)],
        "professor": [(p(i),) for i in range(professors)],
        "inPhase": [(s(i), f"phase{q}") for i, q in enumerate(phase)],
        "hasPosition": [(p(i), f"post{i % 3}") for i in range(professors)],
        "publication": [(f"t{t}", s(a)) for t, a in enumerate(author)]
        + [(f"t{t}", p(advisor[a])) for t, a in enumerate(author) if is_joint[t]],
        "taughtBy": [(f"c{c}", p(teacher[c]), f"term{term[c]}") for c in range(courses)],
        "ta": [(f"c{c}", s(i), f"term{term[c]}") for i, c in enumerate(helped) if dice.random() < 0.6],
    }
    facts = [table(name, found) for name, found in rows.items()]
    pairs = dice.permutation(
        np.stack(np.meshgrid(range(students), range(professors), indexing="ij"), -1).reshape(-1, 2)
    )
    parts = np.split(pairs, [len(pairs) // 2, 2 * len(pairs) // 3])
    labelled = [
        table("advisedBy", [(s(i), p(j), int(advisor[i] == j and phase[i] > 0)) for i, j in part], labelled=True)
        for part in parts
    ]
    queries = {"valid": [labelled[1]], "test": [labelled[2]]}
    return Problem.build("university", parse_theory(theory), [*facts, labelled[0]], queries, **given)  # type: ignore


def table(name: str, rows: list[tuple[object, ...]], *, labelled: bool = False) -> Table:
    columns = {f"c{i}": [row[i] for row in rows] for i in range(len(rows[0]) - labelled)}
    labels = {"label": [row[-1] for row in rows]} if labelled else {}
    return Table(pa.table(columns | labels), name)
