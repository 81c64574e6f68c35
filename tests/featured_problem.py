"""Papers with titles and numbers, people with nothing, images, and predicates of one, two and three positions."""

import numpy as np
import pyarrow as pa

import r2n
from r2n.data.features import Analyzer, FeatureTable

THEORY = r2n.parse_theory("""
domain paper, image, person
domain thing = paper | image | person
predicate good(paper)
predicate same(paper, paper)
predicate alike(thing, thing)
predicate wrote(person, paper)
predicate between(paper, paper, paper)
predicate cites(paper, paper) closed
rule symmetry: same(x, y) -> same(y, x)
""")
TITLES = {"p1": "cats and dogs", "p2": "dogs", "p3": "cats and mice and cats", "p4": "unseen dogs"}
NUMBERS = {"p1": (1.0, 5.0), "p2": (2.0, 5.0), "p3": (4.0, 5.0), "p4": (-3.0, 5.0)}
IMAGES = {f"i{i}": np.random.default_rng(i).normal(size=(1, 4, 4)) for i in range(3)}


def table(predicate: str, *rows: tuple[str, ...]) -> r2n.Table:
    columns = {f"c{i}": list(column) for i, column in enumerate(zip(*rows, strict=True))}
    return r2n.Table(pa.table(columns), predicate=predicate)


def featured_problem(features: dict[str, object] | None = None, analyzer: Analyzer = "word") -> r2n.Problem:
    """p4 is only asked about, and stands in closed facts."""
    facts = [
        table("good", ("p1",), ("p3",)),
        table("same", ("p1", "p2"), ("p3", "p3")),
        table("alike", ("p1", "i0"), ("i1", "i2"), ("ann", "p1")),
        table("wrote", ("ann", "p1"), ("bob", "p2")),
        table("between", ("p1", "p2", "p3")),
        table("cites", ("p4", "p1")),
    ]
    asked = {"test": [table("same", ("p4", "p2")), table("good", ("p4",))]}
    rows = {name: [TITLES[name], *NUMBERS[name]] for name in TITLES}
    papers = pa.table(
        {
            "id": list(rows),
            "title": [row[0] for row in rows.values()],
            "x": [row[1] for row in rows.values()],
            "y": [row[2] for row in rows.values()],
        }
    )
    given = {"paper": FeatureTable(papers, text="title", vector=("x", "y"), analyzer=analyzer), "image": IMAGES}
    return r2n.Problem.build(
        "papers",
        THEORY,
        facts,
        asked,
        domains={"image": list(IMAGES)},
        features=given if features is None else features,  # pyright: ignore
    )
