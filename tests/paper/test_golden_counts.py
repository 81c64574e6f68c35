"""Countries S1-S3: the sizes of backward groundings and the reach of forward chaining, known from plain loops."""

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import r2n.datasets
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.data.tables import Facts, Table
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounding
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.logic.theory import Theory
from tests.oracles import grounding as oracle

DATA = Path(r2n.datasets.__file__).parent / "data"
THEORY = """
domain place
predicate locatedIn(place, place)
predicate neighborOf(place, place)
rule hierarchy: locatedIn(x, y) & locatedIn(y, z) -> locatedIn(x, z)
rule manifold:  neighborOf(x, y) & locatedIn(x, z) -> locatedIn(y, z)
"""
GROUND_RULES = {  # (variant, which queries): at width 0 and depth 1, width 1 and depth 2, width 1 and depth 3
    (1, "positive"): (90, 179, 402),
    (1, "all"): (93, 210, 645),
    (2, "positive"): (66, 216, 465),
    (2, "all"): (69, 242, 685),
    (3, "positive"): (1, 258, 781),
    (3, "all"): (2, 273, 940),
}
PROVED = {1: (24, 24, 24), 2: (23, 24, 24), 3: (1, 24, 24)}  # positives with at least one ground rule
DERIVED = {  # of 24 positives and of 96 negatives, after 1, 2, 3 rounds
    1: ((24, 2), (24, 8), (24, 15)),
    2: ((23, 2), (24, 8), (24, 15)),
    3: ((1, 1), (23, 4), (24, 10)),
}
WIDTH_AND_DEPTH = ((0, 1), (1, 2), (1, 3))


def lines(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def facts(rows: list[list[str]], predicate: str, source: Path) -> Facts:
    own = [(i, row) for i, row in enumerate(rows) if row[1] == predicate]
    return Facts(
        predicate,
        (pa.array([row[0] for _, row in own]), pa.array([row[2] for _, row in own])),
        np.ones(len(own), dtype=bool),
        np.array([i for i, _ in own], dtype=np.int64),
        Table(source),
    )


@cache
def countries(variant: int, theory: str = THEORY) -> KnowledgeBase:
    source = DATA / f"countries-s{variant}" / "train.tsv"
    rows = lines(source)
    tables = [facts(rows, predicate, source) for predicate in ("locatedIn", "neighborOf")]
    return KnowledgeBase.build(parse_theory(theory), tables)


def queries(knowledge: KnowledgeBase, label: str) -> np.ndarray:
    """The sorted codes of the 24 positive, the 96 negative, or all test queries."""
    rows = lines(DATA / "countries" / "test_queries.tsv")
    wanted = {"positive": ["1"], "negative": ["0"], "all": ["0", "1"]}[label]
    ids = knowledge.language.constant_id
    pairs = np.array([[ids(row[0]), ids(row[2])] for row in rows if row[3] in wanted], dtype=np.int64)
    return np.sort(knowledge.base.encode(knowledge.language.predicate("locatedIn"), pairs))


def heads(grounding: Grounding) -> np.ndarray:
    columns = [part.atoms[:, part.rule.head_positions[0]] for part in grounding.ground_rules]
    return np.unique(np.concatenate(columns))


@pytest.mark.parametrize("step", [0, 1, 2], ids=["w0-d1", "w1-d2", "w1-d3"])
@pytest.mark.parametrize(("variant", "asked"), GROUND_RULES)
def test_backward_grounding_has_the_golden_size(variant: int, asked: str, step: int) -> None:
    knowledge = countries(variant)
    width, depth = WIDTH_AND_DEPTH[step]
    grounding = BackwardGrounder(width=width, depth=depth).ground(Store(knowledge), queries(knowledge, asked))
    assert len(grounding) == GROUND_RULES[variant, asked][step]
    proved = np.isin(queries(knowledge, "positive"), heads(grounding))
    assert int(proved.sum()) == PROVED[variant][step]


@pytest.mark.parametrize("variant", [1, 2, 3])
def test_the_oracle_too_has_the_golden_size(variant: int) -> None:
    theory = parse_theory(THEORY)
    rows = lines(DATA / f"countries-s{variant}" / "train.tsv")
    places = {name for row in rows for name in (row[0], row[2])}
    known = frozenset((row[1], row[0], row[2]) for row in rows)
    world = oracle.World(theory, {"place": tuple(sorted(places))}, known)
    asked = [(row[1], row[0], row[2]) for row in lines(DATA / "countries" / "test_queries.tsv") if row[3] == "1"]
    assert sum(map(len, oracle.backward(world, asked, width=0, depth=1))) == GROUND_RULES[variant, "positive"][0]


def chained(knowledge: KnowledgeBase) -> KnowledgeBase:
    """One round of forward chaining: the heads of the known-body ground rules become facts."""
    atoms = np.union1d(knowledge.evidence.atoms, heads(KnownBodyGrounder().ground(Store(knowledge))))
    return KnowledgeBase(knowledge.theory, knowledge.language, Evidence(atoms, np.ones(len(atoms), dtype=bool)))


def derived(knowledge: KnowledgeBase) -> tuple[int, int]:
    counts = [
        int(np.isin(queries(knowledge, kind), knowledge.evidence.atoms).sum()) for kind in ("positive", "negative")
    ]
    return counts[0], counts[1]


@pytest.mark.parametrize("variant", DERIVED)
def test_forward_chaining_derives_the_golden_numbers(variant: int) -> None:
    knowledge = countries(variant)
    assert derived(knowledge) == (0, 0)
    for expected in DERIVED[variant]:
        knowledge = chained(knowledge)
        assert derived(knowledge) == expected


def test_the_first_rule_alone_derives_only_what_is_true_in_s1() -> None:
    full = countries(1)
    theory = Theory(full.theory.domains, full.theory.predicates, full.theory.rules[:1])
    knowledge = KnowledgeBase(theory, full.language, full.evidence)
    assert derived(chained(knowledge)) == (24, 0)


def test_typed_domains_are_why_full_grounding_is_possible() -> None:
    """272 untyped things would give 20,123,648 ground rules, typed ones 244 x 23 x 5; the symbols are 271."""
    knowledge = countries(1)
    assert len(knowledge.language.constants) == 271
    typed = parse_theory(
        "domain country, region, subregion\n"
        "domain place = country | region | subregion\n"
        "predicate locatedIn(place, place)\n"
        "rule r: locatedIn(x: country, y: subregion) & locatedIn(y, z: region) -> locatedIn(x, z)"
    )
    domains = {
        name: (DATA / "countries" / f"{file}.txt").read_text(encoding="utf-8").split("\n")[:-1]
        for name, file in (("country", "countries"), ("region", "regions"), ("subregion", "subregions"))
    }
    assert {name: len(members) for name, members in domains.items()} == {"country": 244, "region": 5, "subregion": 23}
    (part,) = FullGrounder().ground(Store(KnowledgeBase.build(typed, [], domains=domains))).ground_rules
    assert len(part) == 28_060
