"""Constants that many facts share -> spread over the workers, where a join by them would be one worker's alone.

Of two atoms joined by a variable, the facts of a hot constant are salted: those of the first atom get one of some
numbers each, those of the second are there once for each number, and the number joins them as a variable does. Every
pair still meets once.
"""

from r2n.data.conjunctive import AtomTable
from r2n.grounding.joins import Match, RuleQuery
from r2n.grounding.remote.tables import RemoteRelation, RemoteTables
from r2n.logic.formula import Term, Variable

SALTS = 16
LEAST_PAIRS = 1_000_000  # of a constant: below, no worker is long at it
HOT_SHARE = 0.02  # of all pairs of a join

Salted = dict[int, tuple[AtomTable, tuple[Term, ...]]]
"""For joined atoms, by their number: the table and the terms to join instead."""

_SALT = Variable("salt of a hot constant")


def salted(tables: RemoteTables, query: RuleQuery) -> Salted:
    """The atoms of a query to be salted, with views of theirs; none where no constant is hot."""
    for number, (first, second) in enumerate(zip(query.joined, query.joined[1:], strict=False)):
        shared = [term for term in first[1].terms if isinstance(term, Variable) and term in second[1].terms]
        if len(shared) != 1:
            continue
        positions = first[1].terms.index(shared[0]), second[1].terms.index(shared[0])
        if _most_pairs(first, positions[0]) * _most_pairs(second, positions[1]) < LEAST_PAIRS:
            continue
        hot = _hot_constants(tables, first[0].name, positions[0], second[0].name, positions[1])
        if hot:
            return {
                number: _spread(tables, first, positions[0], hot),
                number + 1: _repeated(tables, second, positions[1], hot),
            }
    return {}


def _most_pairs(match: Match, position: int) -> int:
    """In how many atoms a constant stands at most."""
    return match[0].most[position] if isinstance(match[0], RemoteRelation) else 0


def _hot_constants(tables: RemoteTables, one: str, i: int, other: str, j: int) -> list[int]:
    """Constants whose pairs are many, and a large share of all pairs."""
    counts = (
        f"SELECT x.a{i} AS c, x.n * y.n AS pairs FROM (SELECT a{i}, count(*) AS n FROM {one} GROUP BY a{i}) AS x"
        f" JOIN (SELECT a{j}, count(*) AS n FROM {other} GROUP BY a{j}) AS y ON x.a{i} = y.a{j}"
    )
    large = f"pairs >= {LEAST_PAIRS} AND pairs >= {HOT_SHARE} * (SELECT sum(pairs) FROM pairs_of)"
    return tables.engine.ask(f"WITH pairs_of AS ({counts}) SELECT c FROM pairs_of WHERE {large} ORDER BY c")[
        "c"
    ].tolist()


def _in(hot: list[int], position: int) -> str:
    return f"a{position} IN ({', '.join(f'{constant}L' for constant in hot)})"


def _spread(tables: RemoteTables, match: Match, at: int, hot: list[int]) -> tuple[AtomTable, tuple[Term, ...]]:
    columns = match[0].table.columns
    salt = f"CASE WHEN {_in(hot, at)} THEN pmod(xxhash64({', '.join(columns)}), {SALTS}L) ELSE 0L END"
    return _view(tables, match, f"{match[0].name}_spread_{at}", f"SELECT *, {salt} AS salt FROM {match[0].name}")


def _repeated(tables: RemoteTables, match: Match, at: int, hot: list[int]) -> tuple[AtomTable, tuple[Term, ...]]:
    salts = f"CASE WHEN {_in(hot, at)} THEN sequence(0L, {SALTS - 1}L) ELSE array(0L) END"
    return _view(
        tables, match, f"{match[0].name}_repeated_{at}", f"SELECT *, explode({salts}) AS salt FROM {match[0].name}"
    )


def _view(tables: RemoteTables, match: Match, name: str, sql: str) -> tuple[AtomTable, tuple[Term, ...]]:
    tables.engine.view(name, sql)
    return AtomTable(name, (*match[0].table.columns, "salt")), (*match[1].terms, _SALT)
