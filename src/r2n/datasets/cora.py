"""Cora, one of five folds left out, as the paper's supervised protocol needs it.

Fold i is the test. The next fold is for validation, without the atoms of fold i, and the other three are for training,
without the atoms of either. SamePaper is derived from the facts. Each fold has constants of its own (`S1:Author_...`),
so that its facts say nothing about another fold; where the folds are `joined`, one name is one constant in all of them,
and the facts of all folds are taken together.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool

from r2n.data.candidates import Candidates
from r2n.data.knowledge_base import wrong_arity
from r2n.data.problem import Problem, read_problem_file
from r2n.data.tables import Table, read_facts
from r2n.errors import DataError
from r2n.logic.parser import read_theory

FOLDS = (1, 2, 3, 4, 5)
DOMAINS = {"SameAuthor": "author", "SameTitle": "title", "SameVenue": "venue"}
PACKAGE = Path(__file__).parent / "data" / "cora"
_COLUMNS = [("head", "string"), ("relation", "string"), ("tail", "string"), ("label", "int64")]


def load_cora(name: str, folder: Path, fold: int, *, joined: bool, on_error: str = "raise") -> Problem:
    """The problem that asks for the labels of a fold; `folder` holds the files of all folds."""
    options = read_problem_file(PACKAGE / "options.toml")
    rejected: list[DataError] = []
    labels = {i: _atoms(folder / f"S{i}" / "queries", on_error, rejected) for i in FOLDS}
    valid = fold % len(FOLDS) + 1
    held_out = {"test": [], "valid": [fold], "train": [fold, valid]}
    chosen = {"test": [fold], "valid": [valid], "train": [i for i in FOLDS if i not in (fold, valid)]}
    tables = {
        split: [
            _table(labels[i].filter(pa.array(_are_new(labels[i], [labels[j] for j in held_out[split]]))), i, joined)
            for i in folds
        ]
        for split, folds in chosen.items()
    }
    texts: dict[str, dict[str, str]] = {domain: {} for domain in DOMAINS.values()}
    for i, atoms in labels.items():
        for predicate, domain in DOMAINS.items():
            own = atoms.filter(pc.equal(atoms["relation"], predicate))
            names = pc.unique(pa.chunked_array([*own["head"].chunks, *own["tail"].chunks], pa.string())).to_pylist()
            texts[domain] |= {name if joined else f"S{i}:{name}": name.partition("_")[2] for name in names}
    problem = Problem.build(
        name,
        read_theory(PACKAGE / "theory.r2n"),
        tables["train"],
        {split: tables[split] for split in ("valid", "test")},
        domains=texts,
        features=texts,
        background=[
            Table(path) if joined else _table(_atoms(path, on_error, rejected), i, joined)
            for i, path in ((i, folder / f"S{i}" / "facts") for i in FOLDS)
        ],
        derived=options.derived,
        candidates={predicate: Candidates() for predicate in options.candidates},
        on_error=on_error,
        options=options.options(),
    )
    return replace(problem, report=replace(problem.report, rejected=(*rejected, *problem.report.rejected)))


def cuts(problem: Problem, folder: Path, fold: int) -> dict[str, Bool[np.ndarray, " atoms"]]:
    """Parts of the test queries that are harder: not of a constant with itself; and in no other fold either."""
    base = problem.knowledge.base
    index, arguments = base.decode(problem.test.atoms)
    constants = pa.array([constant.rpartition(":")[2] for constant in base.language.constants], pa.string())
    predicates = pa.array([predicate.name for predicate in base.language.predicates], pa.string())
    asked = pa.table(
        {
            "head": constants.take(pa.array(arguments[:, 0])),
            "relation": predicates.take(pa.array(index)),
            "tail": constants.take(pa.array(arguments[:, 1])),
        }
    )
    others = [_atoms(folder / f"S{i}" / "queries", "skip", []) for i in FOLDS if i != fold]
    not_reflexive = arguments[:, 0] != arguments[:, 1]
    return {"not_reflexive": not_reflexive, "new": not_reflexive & _are_new(asked, others)}


def _atoms(path: Path, on_error: str, rejected: list[DataError]) -> pa.Table:
    """The facts of a file, true and false, as triples; what is left out (`on_error="skip"`) is added to `rejected`."""
    found = read_facts(Table(path), on_error="skip" if on_error == "skip" else "raise")
    wrong = [
        wrong_arity(group, 2, f"write {group.predicate}(FIRST, SECOND)")
        for group in found.facts
        if len(group.arguments) != 2
    ]
    if wrong and on_error != "skip":
        raise wrong[0]
    rejected += [*found.rejected, *wrong]
    parts = [pa.schema(_COLUMNS).empty_table()]
    for group in found.facts:
        if len(group.arguments) == 2:
            (head, tail), relation = group.arguments, pa.repeat(group.predicate, len(group))
            parts.append(pa.table([head, relation, tail, group.truth.astype(np.int64)], parts[0].column_names))
    return pa.concat_tables(parts)


def _are_new(atoms: pa.Table, others: list[pa.Table]) -> Bool[np.ndarray, " atoms"]:
    """Whether each atom is in none of the other tables."""
    keys, *known = (
        pc.binary_join_element_wise(table["relation"], table["head"], table["tail"], " ") for table in (atoms, *others)
    )
    return ~np.logical_or.reduce([np.zeros(len(keys), bool), *(pc.is_in(keys, value_set=k).to_numpy() for k in known)])


def _table(atoms: pa.Table, fold: int, joined: bool) -> Table:
    for column in () if joined else ("head", "tail"):
        atoms = atoms.set_column(
            atoms.column_names.index(column), column, pc.binary_join_element_wise(f"S{fold}", atoms[column], ":")
        )
    return Table(atoms, label="label", called=f"the labels of Cora's fold {fold}")
