"""Known problems by name: the benchmarks of the paper, and two larger knowledge graphs.

Embedded datasets are problem folders inside the package. The others are read from the folder in `R2N_DATA`
or from the download cache, and their problems are put together here. Nothing here uses the network.

Of Cora one of five folds is left out, as the paper's supervised protocol needs it. Fold i is the test. The next fold is
for validation, without the atoms of fold i, and the other three are for training, without the atoms of either.
SamePaper is derived from the facts. Each fold has constants of its own (`S1:Author_...`), so that its facts say nothing
about another fold; where the folds are `joined`, one name is one constant in all of them, and the facts of all folds
are taken together.
"""

from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool

from r2n.data.candidates import Candidates
from r2n.data.knowledge_base import wrong_arity
from r2n.data.problem import Problem, load_problem, read_problem_file
from r2n.data.tables import Table, read_facts
from r2n.data.text_tables import read_text
from r2n.datasets.download import EMBEDDED, SOURCES, find, listed
from r2n.errors import ConfigError, DataError, nearest
from r2n.logic.horn import parse_horn_rules
from r2n.logic.parser import read_theory
from r2n.options import GroundingOptions, Options

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


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many constants, predicates, facts and queries a benchmark has."""

    constants: int
    predicates: int
    train: int
    valid: int
    test: int


@dataclass(frozen=True, slots=True)
class Dataset:
    """A benchmark; `folder` is below the package's data if `is_embedded`, else below `R2N_DATA` or the cache."""

    name: str
    title: str
    licence: str
    source: str
    folder: str
    sizes: Sizes
    is_embedded: bool


DATASETS: dict[str, Dataset] = {}
for _row in listed("datasets"):
    _texts = _row["name"], _row["title"], _row["licence"], _row["source"], _row["folder"]
    _sizes = Sizes(*(int(_row[part.name]) for part in fields(Sizes)))
    DATASETS[_row["name"]] = Dataset(*_texts, _sizes, _row["folder"] not in SOURCES)
"""The known names, in the order of the paper."""


def load(name: str | Path, *, on_error: str | None = None) -> Problem:
    """The problem of a known name, else of a problem file or its folder.

    A known name goes before a folder of the same name; write `./nations` for the folder.
    """
    dataset = DATASETS.get(str(name))
    if dataset is not None:
        return replace(_load_known(dataset, on_error), source=dataset.name)
    path = Path(name)
    try:
        exists = path.exists()
    except OSError as error:  # a name that is too long
        raise ConfigError(f"'{str(path)[:60]}...' cannot be read: {error.strerror}") from error
    if exists or path.suffix == ".toml" or len(path.parts) > 1:
        return load_problem(path, on_error=on_error)
    near = nearest(str(name), DATASETS)
    hint = f"{near} " * bool(near) + f"known: {', '.join(DATASETS)}"
    raise ConfigError(f"'{name}' is no known dataset, and there is no such problem file or folder", hint=hint)


def folder_of(dataset: Dataset) -> Path:
    """Where the dataset's files are on this machine; a DataError says how to get them if they are nowhere."""
    return EMBEDDED / dataset.folder if dataset.is_embedded else find(dataset.folder)


def _load_known(dataset: Dataset, on_error: str | None) -> Problem:
    folder = folder_of(dataset)
    if dataset.is_embedded:
        return load_problem(folder, on_error=on_error)
    if dataset.name.startswith("cora"):
        fold, joined = cora_fold(dataset)
        return load_cora(dataset.name, folder, fold, joined=joined, on_error=on_error or "raise")
    text = read_text(folder / "rules.txt").decode()
    text = text.replace("-> rd/award_winner/", "-> /award/award_winner/")  # a slip in FB15k-237: r117 has lost letters
    packed = {split: folder / f"{split}.tsv.gz" for split in ("train", "valid", "test")}
    tables = {
        split: [Table(path if path.exists() else path.with_suffix(""), header=False)] for split, path in packed.items()
    }
    return Problem.build(
        dataset.name,
        parse_horn_rules(text, source=str(folder / "rules.txt")),
        tables.pop("train"),
        tables,
        on_error=on_error or "raise",
        options=Options(grounding=GroundingOptions(strategy="known-body")),  # full: billions of substitutions
    )


def cuts_of_test(problem: Problem) -> dict[str, np.ndarray]:
    """Parts of a known problem's test queries that are looked at by themselves, as masks over them."""
    dataset = DATASETS.get(problem.source or "")
    if dataset is None or not dataset.name.startswith("cora"):
        return {}
    return cuts(problem, folder_of(dataset), cora_fold(dataset)[0])


def cora_fold(dataset: Dataset) -> tuple[int, bool]:
    """The test fold of a problem of Cora, and whether its folds are joined."""
    _, fold, *joined = dataset.name.split("-")
    return int(fold[1:]), bool(joined)
