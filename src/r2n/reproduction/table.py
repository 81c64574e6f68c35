"""The paper's tables as data, one TOML file a row, checked before anything runs."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from r2n.errors import ConfigError, nearest
from r2n.knowledge.options import Options


class TableRow(BaseModel):
    """A row: which table, which datasets, what kind of thing is measured, and what the paper printed for it.

    `kind`: a `network` is trained; `proofs` counts ground rules, without learning; `published` is what others printed,
    measured by nobody here; `evidence` scores an atom by the truth of `reads`, an evidence predicate, on the same
    constants, and `evidence-words` adds the Jaccard similarity of their words. `paper` gives for each dataset its
    headline figure, or a figure for each metric; `average` names the mean over all datasets. `rules = false` takes the
    theory's rules away from the network, a text puts others in their place; `rule_accuracy` measures out(g) too;
    `mined` puts rules mined from the training facts, up to this length, in their place, of at least `mined_confidence`
    and at most `mined_rules` of each head and length; what counted rules and the network say alone are then rows too.
    `constraints` ranks once more, without the candidates that constraints of the training facts forbid: a row too.
    `minus` names the row from which its distance is told. `[grounding]`, `[model]` and `[training]` change the
    problem's own options.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: str
    row: str
    place: int
    about: str
    kind: Literal["network", "proofs", "published", "evidence", "evidence-words"] = "network"
    minus: str | None = None
    rules: bool | str = True
    mined: int = 0
    mined_confidence: float = 0.01
    mined_rules: int = 100
    constraints: bool = False
    reads: str | None = None
    average: str | None = None
    rule_accuracy: bool = False
    datasets: tuple[str, ...]
    paper: Mapping[str, float | Mapping[str, float]] = {}
    grounding: Mapping[str, object] = {}
    model: Mapping[str, object] = {}
    training: Mapping[str, object] = {}

    def paper_figure(self, dataset: str, metric: str) -> float | None:
        """What the paper printed for a metric; one figure for a dataset stands for all its metrics."""
        printed = self.paper.get(dataset)
        return printed.get(metric) if isinstance(printed, Mapping) else printed

    def options(self, problem: Options) -> Options:
        """The problem's options with this row's changes."""
        sections = problem.model_dump()
        for name in sections:
            sections[name] |= getattr(self, name)
        return Options.model_validate(sections)


def table_rows(table: str) -> list[TableRow]:
    """The rows of a table, in order."""
    rows = [row for row in _all_rows() if row.table == table]
    if not rows:
        names = sorted({row.table for row in _all_rows()})
        raise ConfigError(f"there is no table '{table}'", hint=nearest(table, names) or f"known: {', '.join(names)}")
    return sorted(rows, key=lambda row: row.place)


def _all_rows() -> list[TableRow]:
    folder = files("r2n.reproduction") / "tables"
    rows = []
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            try:
                rows.append(TableRow.model_validate(tomllib.loads(file.read_text("utf-8"))))
            except (tomllib.TOMLDecodeError, ValidationError) as error:
                raise ConfigError(f"{file.name}: {error}") from error
    return rows
